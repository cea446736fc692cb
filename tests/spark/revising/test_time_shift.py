"""An app that is a stateful query of its own: slices of history travel through it and back."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.core.revise import TimeShift
from laxity.spark.revising.time_shift import Sent
from laxity.spark.storage.files import LocalFiles
from support import readings, traces
from support.crashes import CrashError, crashing
from support.readings import HOUR_US, START_US, Reading

pytestmark = pytest.mark.spark

SPAN_H, LATENESS_H = 5, 20


def by_hour(rows: DataFrame) -> DataFrame:
    """Two aggregates in series, as a stream allows them: the second counts by the end of a window.

    So what it tells reaches two hours further back. The result names the hour of the day.
    """
    sums = rows.groupBy("meter", F.window("_event", "2 hours", "1 hour"))
    totals = sums.agg(F.sum("kwh").alias("kwh")).groupBy(
        "meter", F.window("window", "3 hours", "1 hour")
    )
    event = F.col("window.start") - F.expr("INTERVAL 2 HOURS")
    return totals.agg(F.sum("kwh").alias("kwh"), F.count(F.lit(1)).alias("n")).select(
        "meter", event.alias("_event"), "kwh", "n", F.hour("window.start").alias("hour")
    )


APP = lx.App(by_hour, windows=[("2h", "1h"), ("3h", "1h")], periodicity="1d", own_query=True)


def batches() -> list[list[Reading]]:
    """Holes of two meters, filled late in two batches; the last row lets all of it be answered."""
    missing = {(0, 7), (0, 8), (0, 20), (1, 9)}
    hours = [(m, h, 10 * m + h) for h in range(30) for m in range(2) if (m, h) not in missing]
    late = [[(m, h, 10 * m + h) for m, h in some] for some in ([(0, 8), (1, 9)], [(0, 7), (0, 20)])]
    return [hours[:24], [*hours[24:40], *late[0]], [*hours[40:], *late[1], (0, 36, 1)]]


def revised(spark: SparkSession, work: Path, sink: Any) -> Any:
    stream = readings.stream(spark, work / "in")
    stream = stream.revise(APP, by="meter", lateness=f"{LATENESS_H}h", period="1h")
    return traces.run(stream, work, sink)


def plain(spark: SparkSession, work: Path) -> set[Any]:
    """The app on all rows at once, as far as they are answered."""
    rows = spark.read.schema(readings.COLUMNS).parquet(str(work / "in"))
    last_us = START_US + (36 - SPAN_H) * HOUR_US
    found = by_hour(rows.withColumnRenamed("ts", "_event"))
    return set(found.where(F.unix_micros("_event") <= last_us).collect())


@pytest.mark.long
def test_exact_after_a_crash_and_with_the_hour_of_the_day(spark: SparkSession, work: Path) -> None:
    for n, batch in enumerate(batches()):
        readings.write(work / "in", n, batch)
    sink = lx.memory()
    with crashing(1, "stages.exit"), pytest.raises(CrashError):
        revised(spark, work, sink)
    query = revised(spark, work, sink)
    newest: dict[Any, Any] = {}
    for row in sink.rows():
        name = row["meter"], row["_event"]
        assert row["_revision"] == (newest[name]["_revision"] + 1 if name in newest else 0)
        newest[name] = row
    told = {
        (m, at.replace(tzinfo=None), r["kwh"], r["n"], r["hour"]) for (m, at), r in newest.items()
    }
    assert told == {tuple(row) for row in plain(spark, work)}
    assert sum(report.stages["revise"]["revised"] for report in query.reports()) > 0
    assert "by_hour as its own query by meter" in str(query.contract)
    _check_ways(LocalFiles(str(work / "checkpoint")))


def _check_ways(files: LocalFiles) -> None:
    """Journeys that are over are forgotten; the last one went a whole number of days."""
    names = files.names("app/ways")
    assert len(files.names("app/in")) <= len(names) <= 4
    ways: list[TimeShift] = []
    for name in names:
        content = files.read(f"app/ways/{name}")
        assert content is not None
        sent = Sent.model_validate_json(content)
        assert sent.over
        ways.append(sent.way)
    day_us = timedelta(days=1) // timedelta(microseconds=1)
    assert all(way.offset_us % day_us == 0 for way in ways)
    assert ways[-1].offset_us > 0
