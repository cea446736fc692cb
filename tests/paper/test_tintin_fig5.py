from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from laxity.paper import town_on_spark
from laxity.paper.figure import draw
from laxity.paper.metering import alerts
from laxity.paper.reprocessing import DISCARD, EAGER, LAZY, SORTED, WAIT, WATERMARK
from laxity.paper.result import Result, Row, Value, versions
from laxity.paper.tintin_fig5 import COMPARABLE, WAYS, arrivals, claims
from laxity.sim.workload.columns import DAY_US, START_US
from laxity.sim.workload.town import Town, town

OF = Town(days=3, max_late_days=1, late_share=0.02)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("how", [DISCARD, WATERMARK])
def test_every_way_reads_every_row_that_comes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(town_on_spark, "WARM", 1)
    blocks = list(town(7, 100, OF))
    town_on_spark.write_days(tmp_path, blocks, OF)
    seen = town_on_spark.speed(spark, how, tmp_path, OF)
    arrivals_us = np.concatenate([block.arrival_us.ravel() for block in blocks])
    assert seen.rows == (arrivals_us < START_US + OF.days * DAY_US).sum() > 0
    assert seen.rows_per_s > 0


@pytest.mark.spark
@pytest.mark.long
def test_who_waits_gives_the_alerts_of_sorted_rows_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(town_on_spark, "WARM", 1)
    of = Town(days=5, max_late_days=1, lost_share=0, broken_share=0.5, silent_share=0)
    town_on_spark.write_days(tmp_path, town(7, 100, of), of)
    town_on_spark.speed(spark, WAIT, tmp_path, of)
    told = spark.read.parquet(f"{tmp_path}/{WAIT}/out").drop("batch_id").collect()
    rows = spark.read.parquet(f"{tmp_path}/arriving").withColumnRenamed("event", "_event")
    until = max(row["_event"] for row in told)
    want = alerts(rows).where(F.col("_event") <= F.lit(until)).collect()
    assert sorted(told) == sorted(want)
    assert len(told) > 100


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """What follows from arrivals in a small town, with the speeds of a large one."""
    late = arrivals(Town(), 7, 300)
    fast = {LAZY: 50, EAGER: 50, DISCARD: 60, SORTED: 60, WATERMARK: 20, WAIT: 9}
    none: Row = dict.fromkeys(late[LAZY])
    return [
        none
        | late.get(how, {})
        | {"meters": COMPARABLE, "how": how, "rows": 1, "rows_per_s": fast[how], "batch_s": 1.0}
        for how in WAYS
    ]


def test_each_claim_holds_and_fails_on_rows_that_contradict_it(rows: list[Row]) -> None:
    def doctored(how: str, **change: Value) -> list[str]:
        changed = [row | change if row["how"] == how else row for row in rows]
        return [claim.claim for claim in claims(changed) if not claim.holds]

    held = next(int(row["held"] or 0) for row in rows if row["how"] == WAIT)
    assert doctored(LAZY) == []
    assert "5 times the throughput" in doctored(WAIT, rows_per_s=10.1)[0]
    assert "cannot be used" in doctored(SORTED, rows_per_s=49)[0]
    assert "within 2 hours" in doctored(LAZY, within_2h=0.89)[0]
    assert "logical latency" in doctored(LAZY, logical_latency_h=961)[0]
    assert "50 times fewer" in doctored(LAZY, held=held // 49)[0]


def test_it_is_drawn(rows: list[Row], tmp_path: Path) -> None:
    result = Result(
        id="tintin-fig5",
        scale="quick",
        seed=7,
        versions=versions(),
        config={},
        rows=rows,
        claims=claims(rows),
    )
    assert draw(result, tmp_path).stat().st_size > 10_000
