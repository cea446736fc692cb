"""Revise: the meter application, a day of hourly readings a batch, against bare Spark.

Bare Spark evaluates the same application on every batch. Alone it sees the batch's own rows, so
what reaches over midnight is wrong; to be right it must keep the rows of the last span itself.
"""

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from bench.batches import bare_ms, our_ms
from bench.line import Line
from laxity.paper.by_hand import ByHand
from laxity.paper.metering import alerts, application

METERS = 50_000
DAYS = 12
WARM = 7  # batches of a run that do not count: until then keys are new, and Java is warming up
HOUR_US = 3_600_000_000
START_US = 490_896 * HOUR_US  # 2026-01-01
SCHEMA = "meter bigint, n bigint, kwh double, ts timestamp"
ROWS = METERS * 24


def run() -> Iterator[Line]:
    spark = lx.session("laxity bench")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make(spark, folder / "clean", late=False)
        _make(spark, folder / "late", late=True)
        bare, keeps, clean, late, everything = (
            statistics.median(way(spark, folder / feed, folder / f"work-{n}")[WARM:])
            for n, (feed, way) in enumerate(
                (
                    ("clean", _bare),
                    ("clean", _bare_keeping),
                    ("clean", _ours),
                    ("late", _ours),
                    ("late", _keeping_all),
                )
            )
        )
        what = "no late rows, against bare Spark that keeps the last span (their time / ours)"
        yield Line(what, keeps / clean, at_least=0.6)
        yield Line(
            "no late rows, against bare Spark that forgets (their time / ours)", bare / clean
        )
        yield Line("rows a second, 0.8 % late", ROWS / late * 1000, at_least=100_000)
        yield Line("time without a period, so that all is kept / with one", everything / late)


def _make(spark: SparkSession, folder: Path, late: bool) -> None:
    """A file a day; late readings, six hours of one meter in 31, are in the next day's."""
    for day in range(DAYS):
        hours = spark.range(0, ROWS, 1, 2).select(
            (F.col("id") % METERS).alias("meter"),
            (F.expr(f"id div {METERS}") + day * 24).alias("n"),
        )
        rows = hours.where(~_is_late(F.col("n"))) if late else hours
        if late and day:
            rows = rows.unionByName(
                hours.withColumn("n", F.col("n") - 24).where(_is_late(F.col("n")))
            )
        kwh = F.col("n") + F.pmod(F.xxhash64("meter", "n"), F.lit(100)) / 200
        jump = F.when(F.pmod(F.xxhash64("n", "meter"), F.lit(100_000)) == 0, 500.0).otherwise(0.0)
        rows.select(
            "meter",
            "n",
            (kwh + jump).alias("kwh"),
            F.timestamp_micros(F.lit(START_US) + F.col("n") * HOUR_US).alias("ts"),
        ).coalesce(1).write.mode("append").parquet(str(folder))


def _is_late(n: Column) -> Column:
    day, hour = F.floor(n / 24), n % 24
    silent = F.pmod(F.xxhash64("meter", day), F.lit(31)) == 0
    return silent & hour.between(10, 15)


def _input(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def _bare(spark: SparkSession, folder: Path, work: Path) -> list[int]:
    def each(rows: DataFrame, batch_id: int) -> None:
        found = alerts(rows.withColumnRenamed("ts", "_event"))
        found.write.parquet(f"{work}/out/batch_id={batch_id}")

    return _run_bare(spark, folder, work, each)


def _bare_keeping(spark: SparkSession, folder: Path, work: Path) -> list[int]:
    by_hand = ByHand(work)

    def each(rows: DataFrame, batch_id: int) -> None:
        by_hand(rows.withColumnRenamed("ts", "_event"), batch_id)

    return _run_bare(spark, folder, work, each)


def _run_bare(
    spark: SparkSession, folder: Path, work: Path, each: Callable[[DataFrame, int], None]
) -> list[int]:
    return bare_ms(_input(spark, folder).writeStream.foreachBatch(each), work)


def _ours(spark: SparkSession, folder: Path, work: Path) -> list[int]:
    return _run_ours(spark, folder, work, "1h")


def _keeping_all(spark: SparkSession, folder: Path, work: Path) -> list[int]:
    return _run_ours(spark, folder, work, None)


def _run_ours(spark: SparkSession, folder: Path, work: Path, period: str | None) -> list[int]:
    source = lx.source("meters", _input(spark, folder), event_time="ts")
    revised = lx.stream(source).revise(application(), by="meter", lateness="40d", period=period)
    return our_ms(revised, work)
