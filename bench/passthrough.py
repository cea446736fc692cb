"""A pass-through pipeline against bare `foreachBatch` writing the same Parquet."""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from bench.batches import bare_ms, our_ms
from bench.line import Line

SCHEMA = "ts timestamp, id bigint, area int, value double, bus string"
WARM = 2  # batches of a run that do not count
TURNS = 3


def run() -> Iterator[Line]:
    spark = lx.session("laxity bench")
    with tempfile.TemporaryDirectory() as folder:
        big = _ratios(spark, Path(folder) / "big", n_rows=500_000, n_batches=9)
        yield Line("throughput, 500 k rows a batch (bare time / ours)", 1 / big, at_least=0.8)
        small = _ratios(spark, Path(folder) / "small", n_rows=100, n_batches=25)
        yield Line("batch floor, 100 rows a batch (our time / bare)", small, at_most=1.5)


def _ratios(spark: SparkSession, folder: Path, n_rows: int, n_batches: int) -> float:
    """Our batch time over bare Spark's, in turns that alternate: the median turn."""
    _make(spark, folder / "input", n_rows, n_batches)
    ratios = []
    for turn in range(TURNS + 1):
        work = folder / str(turn)
        bare = statistics.median(_bare(_input(spark, folder), work / "bare"))
        ours = statistics.median(_ours(_input(spark, folder), work / "ours"))
        ratios.append(ours / bare)
    return statistics.median(ratios[1:])  # the first turn warms Java up


def _make(spark: SparkSession, folder: Path, n_rows: int, n_batches: int) -> None:
    for batch in range(n_batches):
        rows = spark.range(batch * n_rows, (batch + 1) * n_rows, 1, 1)
        rows.select(
            F.timestamp_micros(F.lit(1_700_000_000_000_000) + F.col("id") * 1_000).alias("ts"),
            "id",
            (F.col("id") % 97).cast("int").alias("area"),
            F.rand(batch).alias("value"),
            F.concat(F.lit("bus"), F.col("id") % 911).alias("bus"),
        ).write.mode("append").parquet(str(folder))


def _input(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / "input"))


def _bare(rows: DataFrame, work: Path) -> list[int]:
    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").parquet(f"{work}/out/batch_id={batch_id}")

    same = rows.select(
        F.lit("bus").alias("_source"),
        F.col("ts").alias("_event"),
        F.current_timestamp().alias("_arrival"),
        F.xxhash64(*rows.columns).alias("_seq"),
        *rows.columns,
    )
    return bare_ms(same.writeStream.foreachBatch(write), work)[WARM:]


def _ours(rows: DataFrame, work: Path) -> list[int]:
    source = lx.source("bus", rows, event_time="ts")
    return our_ms(lx.stream(source), work)[WARM:]
