"""A join on Spark: the pairs of the semantics, no more, no fewer, and an honest count of misses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.core.join import joined
from laxity.core.slack import Fixed
from laxity.errors import ConfigError
from laxity.spark.api.stream import Stream
from support import feeds, traces

pytestmark = pytest.mark.spark

WITHIN_US = 2 * feeds.SECOND_US


def two(spark: SparkSession, folder: Path) -> list[Any]:
    return [feeds.source(spark, folder / name) for name in ("bus", "scats")]


@pytest.mark.parametrize("slack", ["1s", pytest.param(None, marks=pytest.mark.long)])
def test_same_as_core_the_pairs_and_the_missed_ones(
    spark: SparkSession, work: Path, slack: str | None
) -> None:
    bus, scats = feeds.lagging()
    reads = feeds.simulated(work, {"bus": bus, "scats": scats}, Fixed(slack))
    area = np.where(reads.source == 0, bus["area"][reads.row], scats["area"][reads.row])
    pairs = joined(reads.event_us, reads.source, area, WITHIN_US)
    fits = (bus["value"][reads.row[pairs.left]] > 3) & (scats["value"][reads.row[pairs.right]] < 8)
    expected = zip(reads.row[pairs.left[fits]], reads.row[pairs.right[fits]], strict=True)

    stream = lx.merge(*two(spark, work), slack=slack).join(
        "bus", "scats", on="area", within="2s", when="bus.value > 3 AND scats.value < 8"
    )
    query = traces.run(stream, work)
    out = feeds.written(work / "out")
    assert sorted((row["bus"]["id"], row["scats"]["id"]) for row in out) == sorted(expected)
    told = [report.stages["join"] for report in query.reports()]
    assert sum(one["compared"] for one in told) == pairs.n_compared
    assert sum(one["missed"] for one in told) == pairs.n_missed
    assert (pairs.n_missed > 0) == (slack is not None)
    assert all(one["exact"] for one in told)
    for row in out:
        assert row["_event"] == max(row["bus"]["ts"], row["scats"]["ts"])
        assert row["_arrival"] == max(row["bus"]["arrival"], row["scats"]["arrival"])
        assert row["area"] == row["bus"]["area"] == row["scats"]["area"]


def test_pairs_are_counted_when_a_revise_keeps_them_at_hand(
    spark: SparkSession, work: Path
) -> None:
    feeds.feed(work / "bus", feeds.rows([0, 1, 2, 3, 4, 5]), [3])
    feeds.feed(work / "scats", feeds.rows([0, 1, 2, 3, 4, 5]), [3])

    def hourly(rows: DataFrame) -> DataFrame:
        return rows.groupBy("area", F.window("_event", "1 hour")).agg(F.count("*").alias("n"))

    pairs = lx.merge(*two(spark, work), slack=None).join("bus", "scats", on="area", within="1s")
    app = lx.App(hourly, windows=[("1h", "1h")])
    query = traces.run(pairs.revise(app, by="area", lateness="1h"), work, lx.memory())
    assert sum(report.stages["join"]["compared"] for report in query.reports()) == 5


def test_a_row_too_old_to_know_what_it_missed_makes_the_count_inexact(
    spark: SparkSession, work: Path
) -> None:
    feeds.feed(work / "bus", feeds.rows([0, 1, 2, 900, 901, 902, 3]), [3, 5, 6])
    feeds.feed(work / "scats", feeds.rows([0, 1, 2, 900, 901, 902, 903]), [3, 5, 6])
    stream = lx.merge(*two(spark, work), slack=None).join("bus", "scats", on="area", within="2s")
    query = traces.run(stream, work)
    assert [one.stages["join"]["exact"] for one in query.reports()] == [True, True, True, False]


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda m: m.join("bus", "bus", on="area", within="1s"), "two different sources"),
        (lambda m: m.join("bus", "tram", on="area", within="1s"), "got bus and tram"),
        (lambda m: m.join("bus", "scats", on="zone", within="1s"), "bus has no column zone"),
        (lambda m: m.join("bus", "scats", on=(), within="1s"), "at least one column"),
        (lambda m: m.join("bus", "scats", on="area", within="-1s"), "within must be ≥ 0"),
        (lambda m: m.join("bus", "scats", on="area", within="1s", when="x > 1"), "does not fit"),
        (
            lambda m: m.apply(lambda rows: rows).join("bus", "scats", on="area", within="1s"),
            "right",
        ),
    ],
)
def test_a_bad_join_is_refused_when_it_is_built(
    spark: SparkSession, work: Path, build: Callable[[Stream], Stream], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        build(lx.merge(*two(spark, work), slack="1s"))
