"""Revise on Spark: an answer at once, exact once late rows are there, and only near them again."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from support import readings, traces
from support.readings import hour_of, newest, plain_totals

pytestmark = pytest.mark.spark

TOTALS = lx.App(readings.totals, windows=readings.TOTALS)


def test_rows_behind_a_hole_are_kept_when_its_end_is_not_recent_any_more(
    spark: SparkSession, work: Path
) -> None:
    """After the first batch hour 6, where the hole ends, has left; hours 7 to 9 are needed too."""
    hours = [hour for hour in range(12) if hour not in (4, 5)]
    batches = [[(0, h, h) for h in part] for part in (hours, range(12, 21), (4, 5, 21))]
    for n, batch in enumerate(batches):
        readings.write(work / "in", n, batch)
    stream = readings.stream(spark, work / "in")
    sink = lx.memory()
    traces.run(stream.revise(TOTALS, by="meter", lateness="2d", period="1h"), work, sink)
    assert newest(sink.rows()) == plain_totals([row for batch in batches for row in batch])


def test_rows_behind_a_hole_that_ends_with_a_late_row_are_kept(
    spark: SparkSession, work: Path
) -> None:
    """Hours 28 to 40 come at once and leave at once; 28 is late, and the hole before it is new."""
    batches = [
        [(0, 24, 1), (9, 33, 1)],
        [*((0, hour, hour) for hour in range(28, 41)), (9, 70, 1)],
        [(0, 25, 2), (0, 26, 2), (0, 27, 2), (9, 71, 1)],
    ]
    for n, batch in enumerate(batches):
        readings.write(work / "in", n, batch)
    stream = readings.stream(spark, work / "in")
    sink = lx.memory()
    traces.run(stream.revise(TOTALS, by="meter", lateness="60h", period="1h"), work, sink)
    assert newest(sink.rows()) == plain_totals([row for batch in batches for row in batch])


HOURLY = [2, 300, 400, -650, 3, 200, 250, -420, 1]
COUNTER = [1_000 + sum(HOURLY[:hour]) for hour in range(10)]


def alerts(rows: DataFrame) -> DataFrame:
    """The running example: large consumption, then negative within four hours."""
    hours = rows.groupBy("meter", F.window("_event", "2 hours", "1 hour").alias("w")).agg(
        (F.max_by("kwh", "_event") - F.min_by("kwh", "_event")).alias("kwh"),
        F.count(F.lit(1)).alias("n"),
    )
    hours = hours.where("n = 2").select("meter", F.col("w.start").alias("at"), "kwh")
    found = hours.groupBy("meter", F.window("at", "4 hours", "1 hour")).agg(
        F.expr("collect_list(IF(kwh > 100, at, NULL))").alias("large"),
        F.expr("max(IF(kwh < 0, at, NULL))").alias("last"),
    )
    value = F.expr("size(filter(large, at -> at < last))").alias("value")
    return found.select("meter", "window", value).where("value > 0")


def test_the_running_example_of_the_paper(spark: SparkSession, work: Path) -> None:
    """Figs. 1, 2 and 4: without two readings three alerts are omitted and two are different."""
    there = [(1, hour, COUNTER[hour]) for hour in range(10) if hour not in (4, 5)]
    for n, batch in enumerate([[*there, (2, 13, 0)], [(1, 4, COUNTER[4])], [(1, 5, COUNTER[5])]]):
        readings.write(work / "in", n, batch)
    app = lx.App(alerts, windows=[("2h", "1h"), ("4h", "1h")])
    sink = lx.memory()
    stream = readings.stream(spark, work / "in")
    traces.run(stream.revise(app, by="meter", lateness="40d", period="1h"), work, sink)
    told = {
        n: {hour_of(r["_event"]): (r["value"], r["_status"], r["_revision"]) for r in rows}
        for n, rows in ((n, table.to_pylist()) for n, table in sink.batches.items())
    }
    tentative = ("tentative", 0)
    assert told[0] == dict.fromkeys((4, 5, 6), (1, *tentative))
    assert told[1] == {0: (2, *tentative), 1: (2, *tentative), 2: (1, *tentative)}
    assert told[2] == {4: (2, "revised", 1), 5: (2, "revised", 1)}


def lonely(rows: DataFrame) -> DataFrame:
    """Windows with a single row; when it arrived is carried along."""
    windows = rows.groupBy("meter", F.window("_event", "2 hours", "1 hour"))
    counted = windows.agg(F.count(F.lit(1)).alias("n"), F.max("_arrival").alias("_arrival"))
    return counted.where("n = 1")


def test_a_result_that_is_no_more_is_retracted_and_what_stays_is_not_repeated(
    spark: SparkSession, work: Path
) -> None:
    for n, batch in enumerate([[(1, 0, 0), (1, 6, 0), (1, 9, 0)], [(1, 1, 0)]]):
        readings.write(work / "in", n, batch)
    app = lx.App(lonely, windows=[("2h", "1h")])
    stream = readings.stream(spark, work / "in").revise(app, by="meter", lateness="9h")
    query = traces.run(stream, work)
    results = spark.read.parquet(str(work / "out"))
    again = [row.asDict() for row in results.where("batch_id = 1").collect()]
    told = {hour_of(r["_event"]): (r["n"], r["_status"], r["_revision"]) for r in again}
    assert told == {0: (None, "retracted", 1), 1: (1, "tentative", 0)}
    hours = sorted(hour_of(row["_event"]) for row in lx.latest(results).collect())
    assert hours == [-1, 1, 5, 6]
    said = query.report().stages["revise"]
    assert (said["first"], said["revised"], said["retracted"]) == (1, 0, 1)
    assert "all rows of 11h are kept" in str(query.contract)


def test_rows_too_late_or_unexpected_are_on_record_and_change_nothing(
    spark: SparkSession, work: Path
) -> None:
    meter = [(1, hour, hour) for hour in range(31) if hour != 22]
    odd = [(1, 20, 99), (1, 10, 99), (1, 22, 7)]  # there already, too late, missed
    for n, batch in enumerate([meter, odd]):
        readings.write(work / "in", n, batch)
    stream = readings.stream(spark, work / "in")
    stream = stream.revise(TOTALS, by="meter", lateness="12h", period="1h")
    sink = lx.memory()
    query = traces.run(stream, work, sink)
    ledger = query.report().ledger
    assert (ledger.released, ledger.late_rejected, ledger.dead) == (31, 1, 1)
    checkpoint = str(work / "checkpoint")
    late = lx.read_letters(checkpoint, "late").first()
    dead = lx.read_letters(checkpoint, "dead").first()
    assert late is not None
    assert dead is not None
    assert (late["late_by"], hour_of(late["_event"])) == (20 * 3600, 10)
    assert dead["_reason"] == "late, and a row is already there"
    assert '"kwh":99' in dead["_row"]
    assert newest(sink.rows()) == plain_totals([*meter, (1, 22, 7)])
    kept = [report.stages["revise"]["kept"] for report in query.reports()]
    assert kept[0] < len(meter)  # hours 6 to 17 are near no hole


def test_only_answers_that_may_change_are_kept(spark: SparkSession, work: Path) -> None:
    whole, holed = ([(meter, hour, 1) for hour in range(31)] for meter in (1, 2))
    readings.write(work / "in", 0, [*whole, *(row for row in holed if row[1] != 22)])
    stream = readings.stream(spark, work / "in")
    sink = lx.memory()
    stream = stream.revise(TOTALS, by="meter", lateness="12h", period="1h")
    said = traces.run(stream, work, sink).report().stages["revise"]
    kept = spark.read.parquet(str(work / "checkpoint/state/revise-given/*")).collect()
    told = [row for row in sink.rows() if row["_status"] == "tentative"]
    assert {row["meter"] for row in told} == {2}
    hours = [sorted(hour_of(row["_event"]) for row in rows) for rows in (kept, told)]
    assert hours[0] == hours[1]
    assert {row["meter"] for row in kept} == {2}
    assert said["tentative"] == len(kept) < said["first"]


def flat(rows: DataFrame) -> DataFrame:
    """The readings of two sources as one."""
    both = [F.coalesce(f"north.{name}", f"south.{name}").alias(name) for name in ("meter", "kwh")]
    return rows.select("_event", *both)


def test_behind_a_merge_answers_come_first_and_are_then_exact(
    spark: SparkSession, work: Path
) -> None:
    north = [[(0, hour, 1) for hour in range(12)], [(0, hour, 1) for hour in range(12, 24)]]
    south = [[(1, hour, 1) for hour in range(6)], [(1, hour, 1) for hour in range(6, 24)]]
    sources: list[Any] = []
    for name, batches in (("north", north), ("south", south)):
        for n, batch in enumerate(batches):
            readings.write(work / name, n, batch)
        sources += readings.stream(spark, work / name, name).branch.sources
    merged = lx.merge(*sources, slack="2h").apply(flat)
    sink = lx.memory()
    query = traces.run(merged.revise(TOTALS, by="meter", lateness="20h"), work, sink)
    last = max(hour_of(row["_event"]) for row in sink.rows())
    want = plain_totals(row for batch in (*north, *south) for row in batch)
    got = newest(sink.rows())
    assert got == {name: value for name, value in want.items() if name[1] <= last}
    said = [report.stages["revise"] for report in query.reports()]
    assert sum(one["late"] for one in said) > 0
    assert sum(one["revised"] for one in said) > 0


def test_rows_held_by_a_merge_and_by_a_trigger_are_both_held(
    spark: SparkSession, work: Path
) -> None:
    rows = [[(0, 0, 1), (1, 9, 1)], [(1, 10, 1), (1, 12, 1)], [(0, 5, 1), (1, 13, 1)]]
    for n, batch in enumerate(rows):
        readings.write(work / "in", n, batch)
    merged = lx.merge(*readings.stream(spark, work / "in").branch.sources, slack=None)
    stream = merged.revise(TOTALS, by="meter", lateness="20h", trigger="lazy")
    ledger = traces.run(stream, work, lx.memory()).report().ledger
    assert (ledger.rows_in, ledger.released, ledger.held) == (6, 4, 2)
