"""Of kept rows no more is kept than what an app uses; when nobody can tell, everything is."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.spark.revising.column_pruning import columns_used_by
from support import readings, traces
from support.readings import newest, plain_totals

pytestmark = pytest.mark.spark

COLUMNS = ["_source", "meter", "n", "kwh", "_event", "_seq"]
SCHEMA = (
    "_source string NOT NULL, meter bigint, n bigint, kwh double, _event timestamp, _seq bigint"
)
WINDOWS = [("2h", "1h")]


def totals(rows: DataFrame, what: Any = "kwh") -> DataFrame:
    windows = rows.groupBy("meter", F.window("_event", "2 hours", "1 hour"))
    return windows.agg(F.sum(what).alias("n"))


def paired(rows: DataFrame) -> DataFrame:
    others = rows.select("meter", "_event", F.col("kwh").alias("other"), "_source")
    return totals(rows.join(others, ["meter", "_event"]), F.col("other") + F.col("n"))


def told(rows: DataFrame) -> DataFrame:
    """Counts a column that is never null, which is counting rows, unless it is not kept."""
    windows = rows.groupBy("meter", F.window("_event", "2 hours", "1 hour"))
    return windows.agg(F.count("_source").alias("n"))


def whole(rows: DataFrame) -> DataFrame:
    return rows


def counting(rows: DataFrame) -> DataFrame:
    """Looks at its rows by itself."""
    most = rows.agg(F.max("n")).first()
    return totals(rows, F.col("kwh") - F.lit(most[0] if most else None))


def caching(rows: DataFrame) -> DataFrame:
    return totals(rows.select("meter", "_event", (F.col("n") * 2).alias("kwh")).cache())


def checkpointing(rows: DataFrame) -> DataFrame:
    return totals(rows.select("meter", "_event", (F.col("n") * 2).alias("kwh")).localCheckpoint())


@pytest.mark.parametrize(
    ("fn", "pruned"),
    [
        (totals, ["meter", "kwh", "_event"]),
        (paired, ["meter", "n", "kwh", "_event"]),
        (told, ["_source", "meter", "_event"]),
        (whole, COLUMNS),
        (counting, COLUMNS),
        (caching, COLUMNS),
        (checkpointing, COLUMNS),
    ],
)
def test_what_an_app_uses(spark: SparkSession, fn: Any, pruned: list[str]) -> None:
    empty = spark.createDataFrame([], SCHEMA)
    assert list(columns_used_by(lx.App(fn, WINDOWS), empty, ("meter", "_event")).names) == pruned


def test_what_is_needed_always_is_used(spark: SparkSession) -> None:
    empty = spark.createDataFrame([], SCHEMA)
    pruned = columns_used_by(lx.App(totals, WINDOWS), empty, ("meter", "_event", "n"))
    assert list(pruned.names) == ["meter", "n", "kwh", "_event"]
    rows = spark.createDataFrame([("s", 1, 2, 3.0, None, 4)], SCHEMA)
    assert pruned.narrow(rows).columns == ["meter", "n", "kwh", "_event"]
    wide = pruned.widen(pruned.narrow(rows))
    assert wide.columns == rows.columns
    assert wide.first() == (None, 1, 2, 3.0, None, None)


def named(rows: DataFrame) -> DataFrame:
    """The totals of the readings, from rows out of which unused columns are chosen by name."""
    return readings.totals(rows.select("meter", "_event", "kwh", "_arrival", "_seq"))


def test_an_app_may_name_what_it_does_not_use(spark: SparkSession, work: Path) -> None:
    batches = [[(0, h, h) for h in part] for part in ((0, 1, 2, 4, 5, 6), range(7, 15), (3, 15))]
    for n, batch in enumerate(batches):
        readings.write(work / "in", n, batch)
    app = lx.App(named, windows=readings.TOTALS)
    stream, sink = readings.stream(spark, work / "in"), lx.memory()
    traces.run(stream.revise(app, by="meter", lateness="2d", period="1h"), work, sink)
    assert newest(sink.rows()) == plain_totals([row for batch in batches for row in batch])
    kept = spark.read.parquet(str(work / "checkpoint/state/recent/*"))
    assert set(kept.columns) == {"meter", "_event", "kwh"}
