"""Small traces as Parquet files, and pipelines over them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import laxity as lx
from laxity.spark.api.stream import Stream
from laxity.spark.engine.source import Source
from laxity.spark.engine.stage import Stage

START_US = 1_700_000_000_000_000
BAD = [None, "soon", "2099-01-01 00:00:00"]
REASONS = ["no timestamp", "unparseable timestamp", "in the future"]


def clean_rows(n_rows: int, seed: int = 1) -> dict[str, Any]:
    """Rows with one event every 10 ms, somewhat out of order, and when they arrived."""
    rng = np.random.default_rng(seed)
    event_us = START_US + np.arange(n_rows, dtype=np.int64) * 10_000
    arrival_us = event_us + rng.integers(0, 400_000, n_rows)
    order = np.argsort(arrival_us, kind="stable")
    return {
        "id": np.arange(n_rows)[order],
        "area": rng.integers(0, 5, n_rows)[order],
        "ts": pa.array(event_us[order], pa.timestamp("us", "UTC")),
        "arrival": pa.array(arrival_us[order], pa.timestamp("us", "UTC")),
    }


def dirty_rows(n_rows: int, every: int = 40) -> dict[str, Any]:
    """The same with text for timestamps, every so many of them bad, and some far too late."""
    rows = clean_rows(n_rows)
    texts: list[str | None] = [str(when)[:26] for when in rows["ts"].cast(pa.timestamp("us"))]
    for n, row in enumerate(range(7, n_rows, every)):
        texts[row] = BAD[n % 3]
    for row in range(n_rows // 2, n_rows, 97):
        texts[row] = "2023-11-14 22:13:20.5"
    return rows | {"ts": pa.array(texts, pa.string())}


def write_trace(path: Path, rows: dict[str, Any]) -> Path:
    pq.write_table(pa.table(rows), path)
    return path


def trace(spark: SparkSession, path: Path, rows_per_batch: int, **options: Any) -> DataFrame:
    reader = spark.readStream.format("laxity.trace").option("path", str(path))
    return reader.options(arrival="arrival", rows_per_batch=rows_per_batch, **options).load()


def trace_source(spark: SparkSession, path: Path, rows_per_batch: int, name: str = "bus") -> Source:
    rows = trace(spark, path, rows_per_batch, partitions=1)
    return lx.source(name, rows, event_time="ts", arrival="arrival", sequence="id")


def with_stage(stream: Stream, stage: Stage) -> Stream:
    return stream.then(stage, stream.schema)


def run(stream: Stream, work: Path, sink: Any = None, name: str = "test") -> Any:
    """Run a stream over all there is; the ended query."""
    sink = sink or lx.parquet(str(work / "out"))
    query = stream.start(
        name, sink=sink, checkpoint=str(work / "checkpoint"), trigger="available_now"
    )
    assert query.await_termination(timeout_s=300)
    return query


def live(stream: Stream, work: Path) -> Any:
    """Start a stream that does not end by itself."""
    return stream.start(
        "live", sink=lx.parquet(str(work / "out")), checkpoint=str(work / "c"), trigger="200ms"
    )


def await_that(query: Any, holds: Callable[[Any], bool], within_s: float = 60) -> Any:
    """The first report of which it holds."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        query.await_termination(0.1)
        if query.reports(last=1) and holds(query.report()):
            return query.report()
    raise AssertionError(f"never so: {query.report()}")
