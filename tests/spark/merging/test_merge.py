"""A merge on Spark: one order, whatever the cuts; nothing lost, nothing stalls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.core.release import LATE, READY, SLACK
from laxity.core.slack import Fixed, MaxDelay, Quantile, SlackRule
from laxity.errors import ConfigError, ContractError
from laxity.spark.api.stream import Stream
from laxity.spark.merging import counts as tally
from laxity.spark.merging import merge
from laxity.spark.rows import partitioning as gather
from support import feeds, traces

pytestmark = pytest.mark.spark

MARKS = {READY: "ready", SLACK: "slack", LATE: "late"}


def merged(row: dict[str, Any]) -> tuple[str, int]:
    return row["_source"], row[row["_source"]]["id"]


def run(stream: Stream, work: Path) -> tuple[Any, list[dict[str, Any]]]:
    query = traces.run(stream, work)
    return query, feeds.written(work / "out")


def two(spark: SparkSession, folder: Path, **terms: Any) -> list[Any]:
    return [feeds.source(spark, folder / name, **terms) for name in ("bus", "scats")]


@pytest.mark.parametrize("n_cuts", [6, pytest.param(20, marks=pytest.mark.long)])
def test_any_batching_and_interleaving_gives_the_same_merged_stream(
    spark: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch, n_cuts: int
) -> None:
    rng = np.random.default_rng(5)
    bus = feeds.rows(np.sort(rng.integers(0, 25, 60)).tolist())
    scats = feeds.rows(np.sort(rng.integers(0, 25, 60)).tolist())
    rank = {"bus": 0, "scats": 1}
    orders = set()
    for cut in range(n_cuts):
        n_batches = 3 if cut % 4 == 0 else 2
        for module in (tally, gather):  # what is done with many rows, and with few
            monkeypatch.setattr(module, "ONE_TASK", 20 if cut % 2 else 100_000)
        for name, columns in (("bus", bus), ("scats", scats)):
            ends = np.sort(rng.integers(0, 61, n_batches - 1)).tolist()
            feeds.feed(work / str(cut) / name, columns, ends)
        stream = lx.merge(*two(spark, work / str(cut)), slack=None)
        query, out = run(stream, work / str(cut))
        assert {row["_read"] for row in out} == {"ready"}
        keys = [(row["_event"], rank[row["_source"]], row["_seq"]) for row in out]
        assert keys == sorted(keys)
        ledger = query.report().ledger
        assert (ledger.rows_in, ledger.released) == (120, len(out))
        orders.add(tuple(map(merged, out)))
    assert len(orders) == 1


@pytest.mark.parametrize("rule", [Fixed("2s"), MaxDelay(), Quantile(0.9, at_least="100ms")])
def test_sim_equals_spark_on_the_same_trace(
    spark: SparkSession, work: Path, rule: SlackRule
) -> None:
    bus, scats = feeds.lagging()
    reads = feeds.simulated(work, {"bus": bus, "scats": scats}, rule)
    query, out = run(lx.merge(*two(spark, work), slack=rule), work)
    ids = {0: bus["id"], 1: scats["id"]}
    expected = [
        (("bus", "scats")[source], int(ids[int(source)][row]), MARKS[mark])
        for source, row, mark in zip(reads.source, reads.row, reads.mark, strict=True)
    ]
    assert [(*merged(row), row["_read"]) for row in out] == expected
    told = [report.stages["merge"] for report in query.reports()]
    assert sum(one["slack"] for one in told) == reads.n_slack > 0
    assert sum(one["late"] for one in told) == reads.n_late > 0


def test_a_source_that_breaks_its_own_order_has_late_rows_that_are_not_lost(
    spark: SparkSession, work: Path
) -> None:
    feeds.feed(work / "bus", feeds.rows([1, 2, 9, 3, 8, 10]), [3])
    feeds.feed(work / "scats", feeds.rows([1, 2, 9, 9, 9, 11]), [3])
    query, out = run(lx.merge(*two(spark, work, unique_times=True), slack=None), work)
    assert [(row["_read"], row["_source"], row[row["_source"]]["id"]) for row in out[6:8]] == [
        ("late", "bus", 3),
        ("late", "bus", 4),
    ]
    assert query.report().ledger.rows_in == 12
    assert sum(report.stages["merge"]["late"] for report in query.reports()) == 2


def test_sources_that_stop_or_never_start_stall_nothing_and_are_named(
    spark: SparkSession, work: Path
) -> None:
    feeds.feed(work / "bus", feeds.rows(range(1, 30)), [10, 20])
    feeds.feed(work / "scats", feeds.rows([1, 2, 3]), [])
    silent = feeds.source(spark, work / "silent", idle_after="2s")
    query = traces.live(lx.merge(*two(spark, work, idle_after="2s"), silent, slack=None), work)
    try:
        report = traces.await_that(query, lambda report: report.ledger.released == 32)
        assert {"scats", "silent"} <= set(report.idle)
        feeds.write(work / "silent", 0, feeds.rows([4, 40]))
        report = traces.await_that(query, lambda report: report.ledger.rows_in == 34)
        assert "silent" not in report.idle
        assert sum(one.stages["merge"]["late"] for one in query.reports()) == 1
    finally:
        query.stop()


def test_a_released_row_that_is_not_written_stops_the_query(
    spark: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "coalesced", lambda rows, n_rows: rows.where("_seq != 3"))
    for name in ("bus", "scats"):
        feeds.feed(work / name, feeds.rows(list(range(10))), [])
    with pytest.raises(ContractError, match="18 rows were released and 16 written"):
        run(lx.merge(*two(spark, work), slack=None), work)


def test_a_restart_while_one_source_is_behind_waits_for_it_and_loses_nothing(
    spark: SparkSession, work: Path
) -> None:
    feeds.feed(work / "bus", feeds.rows(range(1, 30)), [])
    feeds.feed(work / "scats", feeds.rows(range(1, 6)), [])
    stream = lx.merge(*two(spark, work, idle_after="1h", unique_times=True), slack=None)
    query = traces.live(stream, work)
    try:
        report = traces.await_that(query, lambda report: report.ledger.rows_in == 34)
    finally:
        query.stop()
    assert (report.ledger.released, report.ledger.held) == (10, 24)
    feeds.write(work / "scats", 1, feeds.rows(range(6, 30), first_id=5))
    query = traces.live(
        lx.merge(*two(spark, work, idle_after="1h", unique_times=True), slack=None), work
    )
    try:
        report = traces.await_that(query, lambda report: report.ledger.rows_in == 58)
    finally:
        query.stop()
    assert (report.ledger.released, report.ledger.held) == (58, 0)
    keys = [(row["_event"], row["_source"]) for row in feeds.written(work / "out")]
    assert keys == sorted(keys)


def test_no_row_is_held_for_longer_than_the_wall_clock_bound(
    spark: SparkSession, work: Path
) -> None:
    feeds.feed(work / "bus", feeds.rows([1, 2, 3]), [])
    stream = lx.merge(*two(spark, work), slack=None, hold_at_most="1s")
    query = traces.live(stream, work)
    try:
        traces.await_that(query, lambda report: report.ledger.held == 3)
        report = traces.await_that(query, lambda report: report.ledger.released == 3)
    finally:
        query.stop()
    assert report.ledger.held == 0
    assert "held too long" in {
        d.why.partition(";")[0] for r in query.reports() for d in r.decisions
    }


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda bus, _: lx.merge(bus, bus, slack="1s"), "name of its own"),
        (lambda *both: lx.merge(*both, slack="-1s"), "slack must be ≥ 0, got -1s"),
        (
            lambda *both: lx.merge(*both, slack=cast(Any, 5)),
            "slack must be a duration, a slack rule",
        ),
        (lambda *both: lx.merge(*both, slack="1s", hold_at_most="soon"), "hold_at_most must be"),
    ],
)
def test_a_bad_merge_is_refused_when_it_is_built(
    spark: SparkSession, work: Path, build: Callable[..., Stream], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        build(*two(spark, work))
