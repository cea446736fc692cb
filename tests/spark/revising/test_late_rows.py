"""Late rows: which were awaited, and when they are due, as `laxity.core` and the simulator say."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from laxity.core.holes import BEGINNING
from laxity.core.triggers import Trigger, Waiting, eager, lazy
from laxity.sim.retained import Retained, Terms, rows_of
from laxity.spark.revising.late_rows import (
    THERE,
    UNEXPECTED,
    UNNUMBERED,
    LateRows,
    judged,
    new_holes,
    settled,
    triggered,
)
from laxity.spark.revising.marks import BESIDE, DUE, LATE, REASON
from laxity.spark.revising.visible import SuspectRows
from support.one_key import Hole, Key, Row, as_told, beside, holes_of, keys, points, seen_rows
from support.worlds import COUNTED, UNCOUNTED, World, drawn, in_one_job, same_in_all

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cases() -> list[list[Key]]:
    return [drawn(keys(world, joined=True, unnumbered=True), 60) for world in COUNTED]


@pytest.fixture(scope="module")
def rows(spark: SparkSession, cases: list[list[Key]]) -> list[DataFrame]:
    return [seen_rows(spark, world, of) for world, of in zip(COUNTED, cases, strict=True)]


@pytest.fixture(scope="module")
def found(rows: list[DataFrame]) -> Any:
    """Every row with the reason why it was not expected, and its neighbour."""
    return in_one_job(
        judged(of, world.places, world.moment).drop("_key")
        for world, of in zip(COUNTED, rows, strict=True)
    )


def by_row(column: str) -> Callable[[Any], dict[int, Any]]:
    """What a column says of each row that it says anything of."""
    return lambda rows: {row["id"]: row[column] for row in rows if row[column] is not None}


def reason(key: Key, row: Row) -> str | None:
    """Why a late row was not expected."""
    moment = key.world.moment
    if row.mark in ("old", "on time", "waited"):
        return None
    if row.at is None:
        return UNNUMBERED
    holes = holes_of(key.world, key.history).open(moment.span_us, moment.accepted_us)
    is_known = holes.key.size > 0
    if not is_known or holes.of(points(key.world, [row]))[0] >= 0:
        return None
    return THERE if row.at in [old.at for old in key.kept] else UNEXPECTED


def test_same_as_core_whether_a_late_row_is_expected(found: Any, cases: list[list[Key]]) -> None:
    """Told the kept rows and the holes noted it is what core says, told all rows there were."""

    def reasons(_: int, key: Key) -> dict[int, str]:
        said = {nr: reason(key, row) for nr, row in enumerate(key.seen)}
        return {nr: why for nr, why in said.items() if why is not None}

    same_in_all(found, cases, by_row(REASON), reasons)


def test_a_row_without_a_number_is_no_neighbour(spark: SparkSession) -> None:
    """A late row in front of the first that has a number is as welcome as without it."""
    world = COUNTED[4]
    key = Key(world, [Row(None, -1), Row(5, 2)], [], [Row(4, 1, "due")])
    assert [hole.hi for hole in key.noted] == [5]
    (row,) = judged(seen_rows(spark, world, [key]), *_terms(world)).where("_new").collect()
    assert row[REASON] is None


def _terms(world: World) -> Any:
    return world.places, world.moment


def last_at(key: Key) -> int:
    """The place of the last row kept."""
    return max((row.at for row in key.kept if row.at is not None), default=BEGINNING)


def test_a_late_row_that_is_now_the_last_has_the_one_before_beside_it(
    found: Any, cases: list[list[Key]]
) -> None:
    def neighbours(_: int, key: Key) -> dict[int, Any]:
        told = {nr: beside(key, row) for nr, row in enumerate(key.seen)}
        return {nr: one for nr, one in told.items() if one is not None}

    same_in_all(found, cases, by_row(BESIDE), neighbours)


def all_due(key: Key) -> Key:
    """The same key, but all that is late is due."""
    came = [row if row.mark == "on time" else row._replace(mark="due") for row in key.came]
    return replace(key, came=[row for row in came if row.at is not None])


def test_same_as_core_which_holes_are_before_late_rows_behind_the_last(
    spark: SparkSession, cases: list[list[Key]]
) -> None:
    """None of them is recent, so nobody will find these holes in later batches."""

    def wanted(_: int, key: Key) -> set[Hole]:
        due = [row for row in key.came if row.mark == "due"]
        old = [row.at for row in due if row.us <= key.world.moment.answered_us]
        holes = as_told(holes_of(key.world, key.kept + due))
        return {hole for hole in holes if hole.hi in old and hole.hi > last_at(key)}

    def got(rows: Any) -> set[Hole]:
        return {Hole(*(row[f"_{name}"] for name in Hole._fields)) for row in rows}

    worlds = COUNTED[::2]  # there rows may come more than a span late
    due = [[all_due(key) for key in of] for of in cases[::2]]
    frames = [(w, seen_rows(spark, w, of)) for w, of in zip(worlds, due, strict=True)]
    expected = f"{DUE} AND {REASON} IS NULL"
    late = [(w, judged(rows, w.places, w.moment).where(expected)) for w, rows in frames]
    holes = in_one_job(new_holes(rows, w.places, w.moment) for w, rows in late)
    same_in_all(holes, due, got, wanted)


def own(waiting: Waiting) -> Any:
    """A trigger that asks for all there is to know."""
    n_rows, length_us = waiting.n_late + waiting.n_on_time, waiting.newest_us - waiting.oldest_us
    return (n_rows > 3) | ((length_us >= 2) & (waiting.oldest_us + 4 <= waiting.frontier_us))


def due_in_sim(key: Key, trigger: Trigger) -> tuple[list[int], list[int]]:
    """Which late rows are due, and their times."""
    moment, sim = key.world.moment, Retained(key.world.moment.shape, Terms(key.world.lateness_us))
    late = [nr for nr, row in enumerate(key.seen) if row.mark in ("due", "waiting", "waited")]
    n_on_time = sum(row.mark == "on time" for row in key.came)
    sim.newest_us = moment.newest_us
    sim.waiting = rows_of([0] * len(late), [key.seen[nr].us for nr in late], late)
    on_time = np.zeros(n_on_time, np.int64)
    due = sorted(sim.take_up(sim.due(trigger, on_time)).value.tolist())
    return due, sorted({key.seen[nr].us for nr in due})


def due_in_spark(rows: Any) -> tuple[list[int], list[int]]:
    (times,) = {tuple(sorted(row[LATE])) for row in rows}
    return sorted(row["id"] for row in rows if row[DUE]), list(times)


TRIGGERS = [own, lazy, eager, eager, own, lazy]  # one for each world


def test_sim_equals_spark_in_which_rows_are_due(
    rows: list[DataFrame], cases: list[list[Key]]
) -> None:
    found = in_one_job(
        triggered(of, trigger, world.places, world.moment).drop("_key")
        for world, of, trigger in zip(COUNTED, rows, TRIGGERS, strict=True)
    )
    same_in_all(found, cases, due_in_spark, lambda nr, key: due_in_sim(key, TRIGGERS[nr]))


def sorted_by_id(found: Any) -> list[Any]:
    return sorted((nr, row["id"], row[:-1]) for nr, rows in found.items() for row in rows)


@pytest.mark.parametrize("world", [COUNTED[4], UNCOUNTED])
def test_keys_without_late_rows_are_settled_as_if_they_had_been_looked_at(
    spark: SparkSession, world: World
) -> None:
    rows = seen_rows(spark, world, drawn(keys(world), 60))
    whole = triggered(judged(rows, world.places, world.moment), eager, world.places, world.moment)
    told = ["id", DUE, REASON, BESIDE, f"sort_array({LATE}) AS {LATE}"]
    both = [settled(rows, eager, world.places, world.moment), whole]
    got, want = in_one_job(one.selectExpr(*world.places.names, *told) for one in both)
    assert sorted_by_id(got) == sorted_by_id(want)


def test_where_rows_are_not_counted_every_late_one_is_expected(spark: SparkSession) -> None:
    rows = seen_rows(spark, UNCOUNTED, drawn(keys(UNCOUNTED), 60))
    (found,) = in_one_job([judged(rows, UNCOUNTED.places, UNCOUNTED.moment).drop("_key")])
    assert {row[REASON] for of_case in found.values() for row in of_case} == {None}


def test_a_trigger_may_say_always_or_never(spark: SparkSession) -> None:
    """What has waited as long as it may is due all the same."""
    world = COUNTED[0]
    rows = seen_rows(spark, world, [Key(world, [], [], [Row(-6, -6, "due"), Row(-5, -5, "due")])])
    triggers: list[Trigger] = [lambda _: True, lambda _: False]
    late = [triggered(rows, trigger, world.places, world.moment) for trigger in triggers]
    found = in_one_job(of.where(DUE).drop("_key") for of in late)
    assert [[row["us"] for row in one[0]] for one in found] == [[-6, -5], [-6]]


def test_every_late_row_is_due_or_waits_or_is_dead(
    rows: list[DataFrame], cases: list[list[Key]]
) -> None:
    world, of = COUNTED[4], cases[4]
    late_rows = LateRows(SuspectRows(rows[4], len(of)), world.moment, dict)
    parts = {
        "recent": late_rows.recent,
        "behind": late_rows.behind(),
        "waiting": late_rows.waiting(),
        "dead": late_rows.dead(),
    }
    columns = [*world.places.names, "id"]
    found = in_one_job(rows.selectExpr(*columns) for rows in parts.values())

    def part(row: Row) -> str | None:
        when = "behind" if row.us <= world.moment.answered_us else "recent"
        marks = {"due": when, "waiting": "waiting", "waited": "waiting", "dead": "dead"}
        return marks.get(row.mark)

    def of_part(nr: int, key: Key) -> list[int]:
        return [place for place, row in enumerate(key.seen) if part(row) == list(parts)[nr]]

    same_in_all(found, [of] * len(parts), lambda rows: sorted(row["id"] for row in rows), of_part)
