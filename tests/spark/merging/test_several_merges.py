"""Several merges in one query: what one made is an input of the next, one tuner sets all slacks."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.core.estimator import FitNow
from laxity.core.history import Point, save_history
from laxity.errors import ConfigError
from laxity.spark.storage.checkpoint import read_last_commit
from laxity.spark.storage.files import LocalFiles
from oracles import Nested, read_nested
from support import feeds, traces
from support.crashes import CrashError, crashing

pytestmark = pytest.mark.spark

NAMES = ("north", "south", "east")


def fed(work: Path, batches: Sequence[Sequence[Sequence[float]]]) -> Path:
    """Sources from the seconds of their events, by batch and source."""
    for n, name in enumerate(NAMES):
        first = 0
        for at, batch in enumerate(batches):
            feeds.write(work / name, at, feeds.rows(batch[n], first_id=first))
            first += len(batch[n])
    return work


def three(spark: SparkSession, work: Path, **terms: Any) -> list[Any]:
    return [feeds.source(spark, work / name, **terms) for name in NAMES]


def nested(sources: Sequence[Any], inner: Any, outer: Any) -> Any:
    north, south, east = sources
    poles = lx.merge(north, south, slack=inner).named("poles")
    return lx.merge(poles, east, slack=outer)


def who(row: dict[str, Any]) -> tuple[str, int]:
    """Which source's row it is that came through."""
    if row["_source"] == "east":
        return "east", row["east"]["id"]
    (name,) = (name for name in ("north", "south") if row["poles"][name] is not None)
    return name, row["poles"][name]["id"]


def test_two_merges_give_one_order_whatever_the_cuts(spark: SparkSession, work: Path) -> None:
    rng = np.random.default_rng(3)
    events = [np.sort(rng.integers(0, 25, 60)).tolist() for _ in NAMES]
    orders = set()
    for cut in range(2):
        ends = [np.sort(rng.integers(0, 61, 2)).tolist() for _ in NAMES]
        for name, times, end in zip(NAMES, events, ends, strict=True):
            feeds.feed(work / str(cut) / name, feeds.rows(times), end)
        stream = nested(three(spark, work / str(cut)), None, None)
        query = traces.run(stream, work / str(cut))
        out = feeds.written(work / str(cut) / "out")
        assert {row["_read"] for row in out} == {"ready"}
        assert [row["_event"] for row in out] == sorted(row["_event"] for row in out)
        ledger = query.report().ledger
        assert (ledger.rows_in, ledger.released) == (180, len(out))
        orders.add(tuple(map(who, out)))
    assert len(orders) == 1


def test_a_merge_of_nothing_but_merges(spark: SparkSession, work: Path) -> None:
    fed(work, [[[1, 4], [2, 5], [3, 6]], [[8], [9], [7.5]]])
    north, south, east = three(spark, work, unique_times=True)
    one = lx.merge(north, slack=None).named("one")
    two = lx.merge(south, east, slack=None).named("two")
    traces.run(lx.merge(one, two, slack=None), work)
    out = feeds.written(work / "out")
    assert [row["_event"].second for row in out] == [21, 22, 23, 24, 25, 26, 27]
    assert [row["one"] is not None for row in out] == [n in (0, 3) for n in range(7)]


@pytest.mark.parametrize("crash", ["output.exit", pytest.param(None, marks=pytest.mark.long)])
def test_with_little_slack_each_merge_reads_what_the_oracle_reads(
    spark: SparkSession, work: Path, crash: str | None
) -> None:
    rng = np.random.default_rng(11)
    events = np.sort(rng.permutation(400)[:180]) / 10
    source = rng.integers(0, 3, events.size)
    batch = np.minimum((events + rng.choice([0, 0, 6], events.size)) // 10, 4).astype(int)
    batch[source == 1] = np.minimum(batch[source == 1] + 1, 4)  # south lags
    batches = [[events[(batch == n) & (source == s)].tolist() for s in range(3)] for n in range(5)]
    stream = nested(three(spark, fed(work, batches)), "4s", "3s")
    if crash is not None:
        with crashing(2, crash), pytest.raises(CrashError):
            traces.run(stream, work)
    query = traces.run(nested(three(spark, work), "4s", "3s"), work)
    expected = read_nested(_us(batches), Nested(inner_us=4_000_000, outer_us=3_000_000))
    got = [(*who(row), row["_read"]) for row in feeds.written(work / "out")]
    assert got == [(NAMES[s], n, mark) for one in expected for s, n, mark in one]
    reports = query.reports()
    assert [sum(r.stages["merge"][m] for m in ("ready", "slack", "late")) for r in reports] == [
        len(one) for one in expected
    ]
    assert sum(report.stages["merge"]["late"] for report in reports) > 0
    assert sum(report.stages["poles-merge"]["late"] for report in reports) > 0
    assert set(reports[0].sources) == {*NAMES, "poles"}
    assert {d.stage for d in reports[0].decisions} == {"merge", "poles-merge"}
    assert reports[-1].ledger.rows_in == 180


def _us(batches: Sequence[Sequence[Sequence[float]]]) -> list[list[list[int]]]:
    return [[feeds.rows(times)["event_us"].tolist() for times in batch] for batch in batches]


def test_what_a_join_made_is_joined_again_and_accounted_for(
    spark: SparkSession, work: Path
) -> None:
    rng = np.random.default_rng(5)
    events = [np.sort(rng.permutation(300)[:40] / 10).tolist() for _ in NAMES]
    fed(work, [[e[:15] for e in events], [e[15:] for e in events], [[99.0]] * 3])
    north, south, east = three(spark, work, unique_times=True)
    pairs = lx.merge(north, south, slack=None).join("north", "south", on="area", within="2s")
    stream = lx.merge(pairs.named("pairs"), east, slack=None)
    query = traces.run(stream.join("pairs", "east", on="area", within="2s"), work)
    found = {
        tuple(row[part][side]["id"] if side else row[part]["id"] for part, side in SIDES)
        for row in feeds.written(work / "out")
    }
    times = [dict(enumerate(round(10 * at) for at in [*e, 99.0])) for e in events]
    assert found == {
        (a, b, c)
        for a, at in times[0].items()
        for b, bt in times[1].items()
        if a % 3 == b % 3 and abs(at - bt) <= 20
        for c, ct in times[2].items()
        if c % 3 == a % 3 and abs(max(at, bt) - ct) <= 20
    }
    n_pairs = sum(r.stages["pairs-join"]["compared"] for r in query.reports())
    ledger = query.report().ledger
    assert n_pairs > 0
    assert ledger.rows_in == ledger.released == 123 + n_pairs


SIDES = (("pairs", "north"), ("pairs", "south"), ("east", ""))


def test_a_branch_that_falls_silent_stalls_nothing(spark: SparkSession, work: Path) -> None:
    fed(work, [[[1, 2, 3], [1, 2], range(1, 20)]])
    query = traces.live(nested(three(spark, work, idle_after="2s"), None, None), work)
    try:
        report = traces.await_that(query, lambda report: report.ledger.released == 24)
        assert {"north", "south", "poles"} <= set(report.idle)
    finally:
        query.stop()


def test_one_tuner_sets_the_slacks_of_all_merges(spark: SparkSession, work: Path) -> None:
    fed(work, [[[10 * n], [10 * n - 20], [10 * n - 25]] for n in range(3, 8)])
    names = ("poles", "land", "merge")
    history = {name: _measured() for name in names}
    save_history(work / "history.json", history)
    rule = lx.Tuned("60s", history=work / "history.json", fitting=FitNow(0))
    for n in range(5):
        feeds.write(work / "west", n, feeds.rows([10 * n], first_id=n))
    west = feeds.source(spark, work / "west", arrival=None)
    land = nested(three(spark, work, arrival=None), rule, rule).named("land")
    query = traces.run(lx.merge(land, west, slack=rule), work)
    commit = read_last_commit(LocalFiles(str(work / "checkpoint")))
    assert commit is not None
    assert commit.memories["poles-merge"]["rule"].keys() == {"seen"}
    assert commit.memories["merge"]["rule"]["slacks_us"].keys() == set(names)
    reports = query.reports()
    decided = [_slacks(report) for report in reports]
    cold_s = 60 / 12
    assert decided[0] == dict.fromkeys(names, cold_s)
    in_force = [report.stages["poles-merge"]["slack_s"] for report in reports]
    known = cold_s
    for now_s, slacks in zip(in_force, decided, strict=True):
        assert now_s == known  # what was decided in the batch before
        known = slacks.get("poles", known)
    assert known != cold_s
    fired = [d.values["fired"] for report in reports for d in report.decisions if d.what == "slack"]
    assert set(fired) > {"cold"}  # it had models of all three
    assert [(p.name, p.bound) for p in reports[0].promises] == [("deadline", 60)]


def _slacks(report: Any) -> dict[str, float]:
    """What a batch decided; nothing if the slacks stay."""
    told = [d.values["slacks_us"] for d in report.decisions if d.what == "slack"]
    return {name: us / 1e6 for name, us in told[0].items()} if told else {}


def _measured() -> tuple[Point, ...]:
    """Rows wait for the slack and half a second; the lag is often twenty seconds."""
    second = 1_000_000
    slacks = [2, 4, 8, 12, 16] * 4
    return tuple(
        Point(
            n * second,
            second,
            second,
            s * second,
            0,
            20 * second,
            100,
            s * second + second // 2,
            100 - 5 * s,
        )
        for n, s in enumerate(slacks)
    )


def test_rows_without_a_time_are_dead_letters_of_the_next_merge(
    spark: SparkSession, work: Path
) -> None:
    fed(work, [[[1, 2, 3], [1, 2, 3], [1, 2, 9]], [[9], [9], [10]]])
    north, south, east = three(spark, work)

    def forgets(rows: Any) -> Any:
        told = F.when(F.col("north.id") == 1, None).otherwise(F.col("_event"))
        return rows.withColumn("_event", told)

    poles = lx.merge(north, south, slack=None).apply(forgets).named("poles")
    query = traces.run(lx.merge(poles, east, slack=None), work)
    (letter,) = lx.read_letters(str(work / "checkpoint"), spark=spark).collect()
    assert (letter["_source"], letter["_reason"]) == ("poles", "no timestamp")
    assert query.report().ledger.dead == 1


def test_what_cannot_be_merged_again_is_refused(spark: SparkSession, work: Path) -> None:
    north, south, east = three(spark, work)
    poles = lx.merge(north, south, slack="1s")
    bad: dict[str, Callable[[], Any]] = {
        "name a stream before it is merged": lambda: lx.merge(poles, east, slack="1s"),
        "inputs need names of their own": lambda: lx.merge(poles.named("east"), east, slack="1s"),
        "a plain word": lambda: poles.named("two words"),
        "needs at least two inputs": lambda: lx.merge(poles.named("poles"), slack="1s"),
        "only what lx.merge made": lambda: lx.stream(east).named("east"),
        "rows need their _event": lambda: poles.apply(
            lambda rows: rows.select("_arrival", "north")
        ).named("poles"),
        "it is lx.merge that takes other streams": lambda: lx.stream(cast("Any", poles)),
        "give each the same lx.Tuned": lambda: lx.merge(
            poles.named("poles"), east, slack=lx.Tuned("6s")
        ),
        "a deadline is the whole query's": lambda: lx.merge(
            lx.merge(north, south, slack="1s", deadline="3s").named("poles"), east, slack="1s"
        ),
    }
    for says, make in bad.items():
        with pytest.raises(ConfigError, match=says):
            make()
