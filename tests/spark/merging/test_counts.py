"""What a merge counts is what is there, whoever counts it, and whatever it need not look at."""

from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from laxity.core.merge import MergeState, Read
from laxity.core.progress import Frontier
from laxity.spark.merging import counts as module
from laxity.spark.merging.counts import NOTHING, MergeCounts, NewRows
from laxity.spark.rows.background import BackgroundJobs

pytestmark = pytest.mark.spark

SOURCES = ("a", "b")
BEFORE_US = 4  # the frontier of the batch before
SCHEMA = "_source string, _us bigint, _came bigint, _seq bigint, _read string"

Row = tuple[str, int, int, int, str | None]


def rows_of(seed: int, merge_us: int, frontier_us: int, low_us: int, late: bool) -> list[Row]:
    """Rows with few times and sequences, so that many are alike in all but one."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for _ in range(int(rng.integers(0, 30))):
        us = int(rng.integers(low_us, low_us + 6))
        read = Read.READY if us <= merge_us else Read.SLACK if us <= frontier_us else None
        if late and us <= BEFORE_US and rng.integers(2):
            read = Read.LATE
        came_us, seq = (int(number) for number in rng.integers(0, 9, 2))
        rows.append((SOURCES[rng.integers(2)], us, came_us, seq, read))
    return rows


def naive(rows: list[Row]) -> dict[str, Any]:
    released = [row for row in rows if row[4]]
    in_order = [row for row in released if row[4] != Read.LATE]
    held = [row for row in rows if not row[4]]
    return {
        Read.READY: sum(row[4] == Read.READY for row in rows),
        Read.SLACK: sum(row[4] == Read.SLACK for row in rows),
        "held": len(held),
        "last": max(((us, SOURCES.index(s), seq) for s, us, _, seq, _ in in_order), default=None),
        "arrived_us": min((row[2] for row in released), default=None),
        "held_us": max((row[1] for row in held), default=None),
        "held_arrived_us": min((row[2] for row in held), default=None),
    }


def on_spark(spark: SparkSession, rows: list[Row]) -> DataFrame:
    made = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    times = {"_event": F.timestamp_micros("_us"), "_arrival": F.timestamp_micros("_came")}
    return made.withColumns(times).drop("_us", "_came")


@pytest.mark.parametrize(("few", "one_came"), [(True, False), (False, True), (False, False)])
@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_all_rows(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, few: bool, one_came: bool, seed: int
) -> None:
    monkeypatch.setattr(module, "ONE_TASK", 100 if few else -1)
    monkeypatch.setattr(module, "NEAR", 2)
    merge_us, frontier_us = [(7, 9), (12, 12), (4, 5)][seed % 3]
    new = rows_of(seed, merge_us, frontier_us, low_us=3, late=True)
    old = rows_of(seed + 100, merge_us, frontier_us, low_us=5 + seed // 3, late=False)
    if one_came:
        new = [(source, us, 7, seq, read) for source, us, _, seq, read in new]
    before = MergeState(
        frontier=Frontier(frontier_us=BEFORE_US),
        n_held=len(old),
        held_us=max((row[1] for row in old), default=None),
        held_arrived_us=min((row[2] for row in old), default=None),
    )
    came = [row[2] for row in new]
    n_late = sum(row[4] == Read.LATE for row in new)
    fresh = NewRows(len(new), n_late, min(came, default=None), max(came, default=None))
    frontier = Frontier(frontier_us=frontier_us, merge_us=merge_us)
    count = MergeCounts(SOURCES, "_arrival", fresh, before, frontier)
    rows, waited, background = on_spark(spark, new), on_spark(spark, old), BackgroundJobs()
    waiting, riding = count.waiting(rows)
    waiting().write.format("noop").mode("overwrite").save()
    near = NOTHING | riding["near"].arrive() | riding["held"].arrive()
    numbers, others = (
        count.all_new(rows, near),
        count.waited(waited, background)() if old else NOTHING,
    )
    background.end()
    got = count.together(numbers, others, waited)
    want = naive(new + old)
    assert {name: got[name] for name in want} == want
    if all(row[4] for row in new):
        assert count.all_new(rows, count.none_waits(rows)) == numbers


def test_no_rows_at_all_are_counted_as_none(spark: SparkSession) -> None:
    count = MergeCounts(SOURCES, "_arrival", NewRows(0, 0, None, None), MergeState(), Frontier())
    assert count.none_waits(on_spark(spark, [])) == NOTHING
