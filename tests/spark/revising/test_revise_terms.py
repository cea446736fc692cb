"""What a revise refuses, before anything starts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.errors import ConfigError
from laxity.spark.api.stream import Stream
from support import readings

pytestmark = pytest.mark.spark

TOTALS = lx.App(readings.totals, windows=readings.TOTALS)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda s: s.revise(TOTALS, by="meter", lateness="-1h"), "lateness must be ≥ 0, got -1h"),
        (
            lambda s: s.revise(TOTALS, by="meter", lateness="1h", period="1h", sequence="n"),
            r"a period or a sequence, got both \(1h, n\)",
        ),
        (lambda s: s.revise(TOTALS, by="metre", lateness="1h"), "column metre is missing; there"),
        (lambda s: s.revise(TOTALS, by=[], lateness="1h"), "at least one column in by="),
        (
            lambda s: s.revise(TOTALS, by="meter", lateness="1h", period="0s"),
            "period must be > 0, got 0s",
        ),
        (
            lambda s: s.revise(TOTALS, by="meter", lateness="1h", sequence="ts"),
            "sequence ts must be a whole number; it is timestamp",
        ),
        (
            lambda s: s.revise(TOTALS, by="meter", lateness="1h", trigger="soon"),
            "trigger must be eager, lazy or a function of Waiting, got 'soon'",
        ),
        (
            lambda s: s.revise(TOTALS, by="meter", lateness="1h", trigger=lambda w: w.n),
            "trigger .* fails on columns",
        ),
        (
            lambda s: s.revise(TOTALS, by="meter", lateness="1h", trigger=lambda w: "yes"),
            "must give a condition, got 'yes'",
        ),
        (lambda s: _of(s, lambda rows: rows.select("nothing")), "fails on the stream's columns"),
        (lambda s: _of(s, lambda rows: rows.count()), "must give a DataFrame, got int"),
        (lambda s: _of(s, lambda rows: rows.drop("meter")), "must give meter; it gives"),
        (lambda s: _of(s, lambda rows: rows.drop("_event")), "must give _event or window"),
        (
            lambda s: _of(s, lambda rows: rows.withColumn("_status", F.lit(1))),
            "gives _status, which revise adds",
        ),
        (
            lambda s: _of(s, lambda rows: rows.withColumn("meter", F.lit("a"))),
            "changes the type of meter",
        ),
        (
            lambda s: _of(s, lambda rows: rows.withColumn("_event", F.lit(1))),
            "an _event that is no timestamp",
        ),
        (
            lambda s: _of(s, lambda rows: rows.withColumn("m", F.create_map("n", "n"))),
            "gives m, a map, which cannot be compared",
        ),
        (
            lambda s: _of(s, readings.totals).revise(TOTALS, by="meter", lateness="1h"),
            "a stream can be revised once",
        ),
        (
            lambda s: lx.App(readings.totals, windows=[("1h", "2h")]),
            "advance must be ≤ its size, got 2h > 1h",
        ),
    ],
)
def test_a_bad_revise_is_refused_when_it_is_built(
    spark: SparkSession, work: Path, build: Callable[[Stream], object], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        build(readings.stream(spark, work))


def _of(stream: Stream, fn: Any) -> Stream:
    return stream.revise(lx.App(fn, windows=readings.TOTALS), by="meter", lateness="1h")
