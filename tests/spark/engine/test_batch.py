"""The batch protocol on Spark: every row accounted for, whatever the batches."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.core.progress import Progress
from laxity.sim.replay import replay
from support import stages, traces

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clean")
    return traces.write_trace(folder / "trace.parquet", traces.clean_rows(1000))


@pytest.fixture(scope="module")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dirty")
    return traces.write_trace(folder / "trace.parquet", traces.dirty_rows(1000))


def by_window(rows: DataFrame) -> DataFrame:
    return rows.groupBy("area", F.window("_event", "1 second").alias("window")).count()


def summed(results: DataFrame) -> list[tuple[Any, ...]]:
    """Counts per area and window, whatever batches they came in."""
    total = results.groupBy("area", "window.start").agg(F.sum("count"))
    return sorted(tuple(row) for row in total.collect())


@pytest.mark.parametrize("rows_per_batch", [333])
@pytest.mark.since(4, 2)
def test_any_batching_gives_the_same_rows(
    spark: SparkSession, clean: Path, work: Path, rows_per_batch: int
) -> None:
    query = traces.run(lx.stream(traces.trace_source(spark, clean, rows_per_batch)), work)
    out = spark.read.parquet(str(work / "out"))
    assert sorted(row["id"] for row in out.select("id").collect()) == list(range(1000))
    ledger = query.report().ledger
    assert (ledger.rows_in, ledger.released) == (1000, 1000)
    batches = [report.rows.rows_in for report in query.reports() if report.rows.rows_in]
    assert sum(batches) == 1000
    assert max(batches) <= rows_per_batch


@pytest.mark.parametrize("rows_per_batch", [450])
def test_any_batching_gives_the_same_window_counts(
    spark: SparkSession, clean: Path, work: Path, rows_per_batch: int
) -> None:
    source = traces.trace_source(spark, clean, rows_per_batch)
    traces.run(lx.stream(source).apply(by_window, per_batch=True), work)
    batch = spark.read.format("laxity.trace").option("path", str(clean)).load()
    want = summed(batch.withColumn("_event", F.col("ts")).transform(by_window))
    assert summed(spark.read.parquet(str(work / "out"))) == want


def test_bad_rows_are_dead_letters_and_no_clock_moves(
    spark: SparkSession, dirty: Path, work: Path
) -> None:
    query = traces.run(lx.stream(traces.trace_source(spark, dirty, 300)), work)
    letters = lx.read_letters(str(work / "checkpoint"))
    found = {row["id"]: row["_reason"] for row in _unpacked(letters)}
    late = set(range(500, 1000, 97))  # overwritten by a plain, if old, timestamp
    rows = traces.dirty_rows(1000)
    want = {
        int(rows["id"][row]): traces.REASONS[n % 3]
        for n, row in enumerate(range(7, 1000, 40))
        if row not in late
    }
    assert found == want
    assert set(want.values()) == set(traces.REASONS)
    out = spark.read.parquet(str(work / "out"))
    assert {row["id"] for row in out.select("id").collect()} == set(range(1000)) - set(want)
    assert query.report().ledger.dead == len(want)
    last_us = traces.START_US + 1000 * 10_000
    assert all(report.sources["bus"].newest_us < last_us for report in query.reports())


def _unpacked(letters: DataFrame) -> list[dict[str, Any]]:
    return [json.loads(r["_row"]) | {"_reason": r["_reason"]} for r in letters.collect()]


def test_rows_that_do_not_fit_the_schema_are_dead_letters(spark: SparkSession, work: Path) -> None:
    texts = ['{"ts": "2023-11-14T22:13:20Z", "n": 1}', '{"ts": "2023', '{"ts": "x", "n": 2}', None]
    trace = traces.write_trace(work / "t.parquet", {"value": pa.array(texts, pa.string())})
    rows = spark.readStream.format("laxity.trace").option("path", str(trace)).load()
    source = lx.source("bus", rows, event_time="ts", schema="ts timestamp, n int")
    sink = lx.memory()
    traces.run(lx.stream(source), work, sink)
    assert [row["n"] for row in sink.rows()] == [1]
    letters = lx.read_letters(str(work / "checkpoint")).collect()
    assert sorted(row["_reason"] for row in letters) == [
        "no timestamp", "unparseable row", "unparseable row",
    ]  # fmt: skip
    assert any('{\\"ts\\": \\"2023' in row["_row"] for row in letters)


@pytest.mark.since(4, 2)
def test_a_stage_that_holds_and_rejects_rows_accounts_for_them(
    spark: SparkSession, dirty: Path, work: Path
) -> None:
    stream = traces.with_stage(lx.stream(traces.trace_source(spark, dirty, 250)), stages.Hold())
    query = traces.run(stream, work)
    ledger = query.report().ledger
    out = spark.read.parquet(str(work / "out"))
    assert ledger.held > 0
    assert ledger.late_rejected == lx.read_letters(str(work / "checkpoint"), "late").count() > 0
    assert ledger.released == out.count() == out.select("id").distinct().count()
    assert query.report().decisions[0].what == "frontier"


@pytest.mark.since(4, 2)
def test_a_row_lost_on_the_way_stops_the_query_with_the_numbers(
    spark: SparkSession, clean: Path, work: Path
) -> None:
    stream = traces.with_stage(lx.stream(traces.trace_source(spark, clean, 500)), stages.Leak())
    with pytest.raises(lx.ContractError, match="500 rows in, 4.. accounted for"):
        traces.run(stream, work)
    assert not (work / "checkpoint" / "commits").exists()


def test_silent_sources_still_make_batches_and_are_called_idle(
    spark: SparkSession, clean: Path, work: Path
) -> None:
    rows = traces.trace(spark, clean, 1000)
    quiet = lx.source("quiet", rows, event_time="ts", arrival="arrival", idle_after="500ms")
    query = lx.stream(quiet).start("t", sink=lx.memory(), checkpoint=str(work / "checkpoint"))
    until = time.monotonic() + 60
    while time.monotonic() < until and not any(one.idle for one in query.reports(last=1)):
        query.await_termination(0.2)
    query.stop()
    silent = [report for report in query.reports() if report.idle == ["quiet"]]
    assert silent
    assert silent[0].rows.rows_in == 0
    assert silent[0].ledger.rows_in == 1000


@pytest.mark.since(4, 2)
def test_sim_equals_spark_on_how_far_each_source_has_come(
    spark: SparkSession, clean: Path, work: Path
) -> None:
    query = traces.run(lx.stream(traces.trace_source(spark, clean, 200)), work, lx.memory())
    seen = [report.sources["bus"].newest_us for report in query.reports() if report.rows.rows_in]
    rows = traces.clean_rows(1000)
    batch = np.arange(1000) // 200
    arrival_us = batch * 10 + np.minimum(batch, 1) * 5  # each batch between two ticks
    ticks = {"event_us": rows["ts"].cast("int64").to_numpy(), "arrival_us": arrival_us}
    simulated = replay({"bus": ticks}, Progress(["bus"], {}, now_us=0), every_us=10)
    assert [one["bus"].newest_us for one in simulated] == seen


def test_latency_is_measured_from_the_arrival_and_judged_by_the_deadline(
    spark: SparkSession, clean: Path, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = traces.trace(spark, clean, 1000)
    old = lx.source("bus", rows, event_time="ts", arrival="arrival")
    query = traces.run(lx.stream(old, deadline="6s"), work / "old", lx.memory())
    assert not query.report().kept
    assert any("deadline 6.0, seen" in record.message for record in caplog.records)
    assert query.report().latency.max_s > query.report().latency.p50_s > 1e6
    new = lx.source("bus", rows, event_time="ts")
    query = traces.run(lx.stream(new, deadline="10min"), work / "new", sink := lx.memory())
    log = (work / "new" / "checkpoint" / "spark" / "offsets" / "0").read_text().splitlines()
    began = {int(row["_arrival"].timestamp() * 1000) for row in sink.batches[0].to_pylist()}
    assert began == {json.loads(log[1])["batchTimestampMs"]}  # so a second try has the same
    assert query.report().kept
    assert 0 < query.report().latency.max_s < 600
    assert query.report().latency.of == "results"


def test_where_results_have_no_arrival_the_inputs_is_taken(
    spark: SparkSession, clean: Path, work: Path
) -> None:
    stream = lx.stream(traces.trace_source(spark, clean, 1000)).apply(by_window, per_batch=True)
    assert traces.run(stream, work, lx.memory()).report().latency.of == "input"


@pytest.mark.since(4, 2)
def test_an_apply_that_reads_nothing_or_everything_twice_is_counted_right(
    spark: SparkSession, clean: Path, work: Path
) -> None:
    def odd(rows: DataFrame) -> DataFrame:
        return rows.select("id").join(rows.select("id"), "id").limit(3)

    stream = lx.stream(traces.trace_source(spark, clean, 500))
    query = traces.run(stream.apply(odd, per_batch=True), work / "odd", lx.memory())
    assert query.report().ledger.released == 1000
    assert sum(report.n_results for report in query.reports()) == 6
    query = traces.run(stream.apply(lambda rows: rows.where("false")), work / "none")
    assert query.report().ledger.released == 1000
    assert not list((work / "none" / "out").glob("batch_id=*"))
