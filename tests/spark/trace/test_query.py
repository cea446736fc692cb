"""The trace source in real queries: every row once, crashes included, and on the wall clock."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from laxity.spark.rows.wall import now_us
from laxity.spark.trace.source import TraceSource

pytestmark = pytest.mark.spark
BUS = {"generator": "laxity.sim.workload:bus", "arg.seconds": "1", "arg.areas": "4"}
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def traces(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(TraceSource)
    return spark


class Collected:
    """The rows of each batch id; one batch can be made to fail."""

    def __init__(self, crash_at: int | None = None) -> None:
        self.crash_at = crash_at
        self.batches: dict[int, Rows] = {}

    def take(self, batch: DataFrame, batch_id: int) -> None:
        if batch_id == self.crash_at:
            raise RuntimeError("crash")
        self.batches[batch_id] = [row.asDict() for row in batch.collect()]

    def run(self, spark: SparkSession, rows_per_batch: int, checkpoint: Path) -> None:
        options = BUS | {"rows_per_batch": str(rows_per_batch)}
        stream = spark.readStream.format("laxity.trace").options(**options).load()
        writer = stream.writeStream.foreachBatch(self.take).trigger(availableNow=True)
        writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()

    def rows(self) -> Rows:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]


def whole_bus(spark: SparkSession) -> Rows:
    rows = spark.read.format("laxity.trace").options(**BUS).load()
    return [row.asDict() for row in rows.collect()]


@pytest.mark.since(4, 2)
def test_a_query_reads_every_row_once_in_batches(traces: SparkSession, tmp_path: Path) -> None:
    collected = Collected()
    collected.run(traces, 150, tmp_path)
    assert [len(rows) for rows in collected.batches.values()] == [150, 150, 150, 50]
    assert collected.rows() == whole_bus(traces)


@pytest.mark.since(4, 2)
def test_crash_in_the_middle_reads_every_row_once(traces: SparkSession, tmp_path: Path) -> None:
    collected = Collected(crash_at=2)
    with pytest.raises(StreamingQueryException, match="crash"):
        collected.run(traces, 120, tmp_path)
    collected.crash_at = None
    collected.run(traces, 120, tmp_path)
    assert sorted(collected.batches) == [0, 1, 2, 3, 4]
    assert collected.rows() == whole_bus(traces)


def test_a_live_query_gives_rows_on_the_wall_clock(traces: SparkSession, tmp_path: Path) -> None:
    before_us = now_us()
    arrivals: list[tuple[int, int]] = []

    def take(batch: DataFrame, batch_id: int) -> None:
        times = batch.selectExpr("unix_micros(arrival) AS us").collect()
        arrivals.extend((row.us, now_us()) for row in times)

    stream = traces.readStream.format("laxity.trace").options(**BUS, pace="live").load()
    writer = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path))
    query = writer.start()
    try:
        deadline_us = now_us() + 60_000_000
        while len(arrivals) < 500 and now_us() < deadline_us:
            query.awaitTermination(1)
    finally:
        query.stop()
    assert len(arrivals) == 500
    assert all(before_us <= arrival <= seen for arrival, seen in arrivals)


def test_spark_shows_what_was_wrong(traces: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="unknown option pase: a trace knows path"):
        traces.readStream.format("laxity.trace").options(**BUS, pase="live").load()
