"""Kept rows are counted by when they expire, as `Moment.stocked` wants them."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from laxity.core.moment import CONTEXTS, N_BUCKETS, RECENT
from laxity.spark.revising.retained import Retained
from support.worlds import UNCOUNTED, World, frame, uncounted

pytestmark = pytest.mark.spark

WORLDS = [
    UNCOUNTED,
    uncounted(span_us=100, lateness_us=1_000, before_us=-60, newest_us=-13),
    uncounted(span_us=7, lateness_us=0, before_us=0, newest_us=0),
    uncounted(span_us=8, lateness_us=16, before_us=0, newest_us=3),
]
NOBODY: Any = None  # counting needs no tables


def alive(world: World, table: str) -> range:
    """The times at which rows may be that are added to a table."""
    moment = world.moment
    if table == RECENT:
        return range(moment.watermark_us + 1, moment.newest_us + 1)
    return range(moment.final_us + 1, moment.watermark_us + 1)


@pytest.mark.parametrize("table", [RECENT, CONTEXTS])
def test_same_as_oracle_how_many_rows_are_in_each_bucket(spark: SparkSession, table: str) -> None:
    """Every row is in one; a row at each time that is kept, and two at the newest."""
    for world in WORLDS:
        times = [*alive(world, table), *alive(world, table)[-1:]]
        kept = Retained(NOBODY, NOBODY, world.places, NOBODY, world.moment)
        rows = frame(spark, [(0, (us,)) for us in times], "us bigint")
        (row,) = rows.agg(kept._by_bucket(table)).collect()
        floor_us, width_us = world.moment.shelf(table)
        want = [0] * (N_BUCKETS + 1)
        for us in times:
            want[(us - floor_us) // width_us] += 1
        assert row["by_bucket"] == want
        stocked = world.moment.stocked({}, {table: dict(enumerate(row["by_bucket"]))})
        assert sum(stocked[table].values()) == len(times)
