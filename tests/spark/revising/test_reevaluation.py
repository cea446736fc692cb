"""What is evaluated again, on which rows, and what is new about it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.core.revise import merged
from laxity.spark.revising.holes import Keys
from laxity.spark.revising.late_rows import LateRows
from laxity.spark.revising.marks import KEY, LATE
from laxity.spark.revising.reevaluation import Replay, may_change
from laxity.spark.revising.visible import SuspectRows
from support.one_key import Key, keys, seen_rows
from support.worlds import COUNTED, UNCOUNTED, World, drawn, frame, in_one_job, same_in_all

pytestmark = pytest.mark.spark

WORLDS = [COUNTED[0], COUNTED[1], COUNTED[4], UNCOUNTED]
APP = lx.App(lambda rows: rows, windows=[("1h", "1h")], kind="kind")


def late_us(key: Key) -> list[int]:
    """The times of its late rows that are due."""
    return sorted({row.us for row in key.came if row.mark == "due"})


def replay(spark: SparkSession, world: World, of: list[Key]) -> Replay:
    rows = seen_rows(spark, world, of)
    late = frame(
        spark, [(nr, (late_us(key),)) for nr, key in enumerate(of)], f"{LATE} array<bigint>"
    )
    found = Keys(late.withColumn(KEY, world.places.key), len(of), dict)
    late_rows = LateRows(SuspectRows(rows, len(of)), world.moment, dict)
    return Replay(APP, world.places, world.moment, late_rows, found)


@pytest.fixture(scope="module")
def cases() -> list[list[Key]]:
    return [drawn(keys(world), 80) for world in WORLDS]


@pytest.fixture(scope="module")
def replays(spark: SparkSession, cases: list[list[Key]]) -> list[Replay]:
    return [replay(spark, world, of) for world, of in zip(WORLDS, cases, strict=True)]


def affected(key: Key) -> tuple[Any, Any]:
    """The results `(lo, hi]` that late rows change and that were answered before."""
    moment = key.world.moment
    lo_us, hi_us = moment.shape.affected(np.array(late_us(key), np.int64))
    hi_us = np.minimum(hi_us, moment.answered_us)
    return lo_us[lo_us < hi_us], hi_us[lo_us < hi_us]


def within(lo_us: Any, hi_us: Any, times_us: list[int]) -> list[bool]:
    """Which times are in one of these `(lo, hi]`."""
    intervals = merged(np.zeros(lo_us.size, np.int64), lo_us, hi_us)
    times = np.array(times_us, np.int64)
    return [bool(held) for held in intervals.hold(np.zeros(times.size, np.int64), times)]


def test_same_as_core_which_rows_the_affected_results_depend_on(
    replays: list[Replay], cases: list[list[Key]]
) -> None:
    """Of those before the last span; the others are there anyway."""

    def needed(_: int, key: Key) -> list[int]:
        lo_us, hi_us = key.world.moment.shape.needed(*affected(key))
        near = within(lo_us, hi_us - 1, [row.us for row in key.seen])
        answered_us = key.world.moment.answered_us
        return [
            nr
            for nr, (row, is_near) in enumerate(zip(key.seen, near, strict=True))
            if is_near and row.us <= answered_us and row.mark in ("old", "due")
        ]

    found = in_one_job(one.older() for one in replays)
    same_in_all(found, cases, lambda rows: sorted(row["id"] for row in rows), needed)


def test_same_as_core_which_results_are_affected(
    spark: SparkSession, replays: list[Replay], cases: list[list[Key]]
) -> None:
    """Beside them are those that are wanted anyway; both get their status."""
    asked = []
    for one, world, of in zip(replays, WORLDS, cases, strict=True):
        times = [(nr, (us,)) for nr in range(len(of)) for us in times_of(world)]
        results = frame(spark, times, "us bigint")
        asked.append(
            one.asked(results, F.col("us") == world.newest_us, F.lit("?").alias("_status"))
        )

    def wanted(nr: int, key: Key) -> list[int]:
        times = times_of(WORLDS[nr])
        near = within(*affected(key), times)
        at = zip(times, near, strict=True)
        return [us for us, is_near in at if is_near or us == WORLDS[nr].newest_us]

    found = in_one_job(asked)
    same_in_all(found, cases, lambda rows: sorted(row["us"] for row in rows), wanted)
    assert {row["_status"] for rows in found[0].values() for row in rows} == {"?"}


def times_of(world: World) -> list[int]:
    """Times around all that late rows may change."""
    reach_us = world.lateness_us + 2 * world.span_us
    return list(range(world.before_us - reach_us, world.newest_us + 1))


@dataclass(frozen=True)
class Result:
    """What was told of a result and when, and what it is now; `None` if there is none."""

    us: int
    kind: str | None
    told: list[tuple[str, int | None]]
    after: tuple[int | None] | None

    @property
    def name(self) -> tuple[int, str | None]:
        """What tells it from the key's others."""
        return self.us, self.kind


@dataclass(frozen=True)
class Revision:
    """A key's late rows, and its results."""

    late_us: list[int]
    results: list[Result]

    def touches(self, result: Result) -> bool:
        """Whether a late row is less than a span behind the result, which was answered before."""
        moment = COUNTED[0].moment
        answered = result.us <= moment.answered_us
        return answered and any(0 <= us - result.us < moment.span_us for us in self.late_us)


VALUES = st.none() | st.integers(0, 2)
FIRST = st.tuples(st.just("tentative"), VALUES)
AGAIN = st.tuples(st.just("revised"), VALUES) | st.just(("retracted", None))
MORE = st.builds(lambda first, more: [first, *more], FIRST, st.lists(AGAIN, max_size=3))
TOLD: st.SearchStrategy[list[tuple[str, int | None]]] = st.just([]) | MORE
CHANGING = st.builds(
    Result,
    st.integers(-13, -3),
    st.sampled_from([None, "a"]),
    TOLD,
    st.none() | st.tuples(VALUES),
)
FINAL = st.builds(Result, st.integers(-13, -3), st.just("b"), st.just([("final", 1)]), st.none())
REVISIONS = st.builds(
    Revision,
    st.sampled_from([[], [-8], [-3], [-8, -3], [-8, -7]]),
    st.lists(CHANGING | FINAL, max_size=8, unique_by=lambda result: result.name),
)
OF_RESULT = "us bigint, kind string, value int, _arrival int"


def new_of(revision: Revision, result: Result) -> tuple[Any, ...] | None:
    """What is to be told of a result, if anything: its value, status and revision."""
    kept = [value for status, value in result.told if status != "final"]
    void = not kept or result.told[-1][0] == "retracted"
    before = None if void else (kept[-1],)
    if not revision.touches(result) or before == result.after:
        return None
    status = "revised" if kept else "tentative"
    value, status = (None, "retracted") if result.after is None else (result.after[0], status)
    return *result.name, value, status, len(kept)


def changed(_: int, revision: Revision) -> list[tuple[Any, ...]]:
    """The same of all results of a key."""
    found = (new_of(revision, result) for result in revision.results)
    return sorted((new for new in found if new is not None), key=str)


def told_again(rows: Any) -> list[tuple[Any, ...]]:
    names = "us", "kind", "value", "_status", "_revision"
    return sorted((tuple(row[name] for name in names) for row in rows), key=str)


def kept_and_after(spark: SparkSession, of: list[Revision]) -> tuple[DataFrame, DataFrame]:
    """The answers kept, and the affected results now; when rows arrived is other in each."""
    told, after = [], []
    for nr, revision in enumerate(of):
        for result in revision.results:
            for n, (status, value) in enumerate(result.told):
                told.append((nr, (*result.name, value, n, status, n)))
            if result.after is not None and revision.touches(result):
                after.append((nr, (*result.name, *result.after, -1)))
    names = APP.naming(UNCOUNTED.places.by)
    values = [*names, "value", "_arrival"]
    given = frame(spark, told, f"{OF_RESULT}, _status string, _revision int")
    given = may_change(given.select(*values, "_status", "_revision"), names)
    return given, frame(spark, after, OF_RESULT).select(values)


def changes(spark: SparkSession, of: list[Revision], is_first: bool) -> DataFrame:
    """What is new; nothing has been kept before the first answers."""
    world = COUNTED[0]
    late = frame(
        spark, [(nr, (one.late_us,)) for nr, one in enumerate(of)], f"{LATE} array<bigint>"
    )
    found = Keys(late.withColumn(KEY, world.places.key), len(of), dict)
    nothing = LateRows(SuspectRows(late, 0), world.moment, dict)
    given, after = kept_and_after(spark, of)
    one = Replay(APP, world.places, world.moment, nothing, found)
    new = one.changes(after, None if is_first else given)
    return new.withColumn("us", F.unix_micros("_event"))


def test_same_as_oracle_what_is_new_about_results(spark: SparkSession) -> None:
    """Each revision of a name is told once, by one more than the last; what is the same is not."""
    of = drawn(REVISIONS, 300)
    found = in_one_job([changes(spark, of, is_first=False)])
    same_in_all(found, [of], told_again, changed)


def test_what_has_had_no_answer_is_told_as_the_first(spark: SparkSession) -> None:
    of = [
        replace(one, results=[replace(r, told=[]) for r in one.results])
        for one in drawn(REVISIONS, 60)
    ]
    found = in_one_job([changes(spark, of, is_first=True)])
    same_in_all(found, [of], told_again, changed)


def test_only_answers_that_are_not_final_are_kept(spark: SparkSession) -> None:
    result = Result(-9, None, [("tentative", 1), ("revised", None), ("retracted", None)], None)
    final = Result(-8, "b", [("final", 1)], None)
    given, _ = kept_and_after(spark, [Revision([-8], [result, final])])
    rows = sorted(given.collect(), key=lambda row: row["_revision"])
    assert [row["_value"] and row["_value"]["value"] for row in rows] == [1, None, None]
    assert [row["_value"] is None for row in rows] == [False, False, True]
