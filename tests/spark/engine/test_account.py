"""The account goes on behind stages that make other rows."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from support import readings, traces

pytestmark = pytest.mark.spark


def flat(rows: DataFrame) -> DataFrame:
    both = [F.coalesce(f"north.{c}", f"south.{c}").alias(c) for c in ("meter", "kwh")]
    return rows.select("_event", "_arrival", *both)


def test_rows_rejected_behind_an_apply_are_in_the_ledger(spark: SparkSession, work: Path) -> None:
    hours = range(40)
    for n, name in enumerate(("north", "south")):
        rows = [(n, hour, 1) for hour in hours]
        readings.write(work / name, 0, rows[: len(rows) // 2])
        readings.write(work / name, 1, [*rows[len(rows) // 2 :], (n, 2, 7), (n, 3, 7)])
    inputs = [readings.stream(spark, work / name, name) for name in ("north", "south")]
    merged = lx.merge(*(one.branch.own_sources[0] for one in inputs), slack="1h")
    app = lx.App(readings.totals, windows=readings.TOTALS)
    revised = merged.apply(flat).revise(app, by="meter", lateness="10h", period="1h")
    report = traces.run(revised, work).report()
    n_late = lx.read_letters(str(work / "checkpoint"), "late", spark=spark).count()
    assert report.ledger.check().late_rejected == n_late > 0
    merge, apply, revise = (report.accounts[n] for n in ("merge", "apply-2", "revise"))
    assert merge.rows_in == report.ledger.rows_in - report.ledger.made == 84
    assert apply.rows_in == apply.released == merge.released
    assert revise.rows_in == report.ledger.made
    assert revise.rows_in == revise.released + revise.late_rejected + revise.dead + revise.held
