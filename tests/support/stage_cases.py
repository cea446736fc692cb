"""One small pipeline for every registered system, for the checks that all of them pass.

A case has sources that a test feeds in any cuts, and results that do not depend on the cuts: that
is what its stage promises, once the input has ended.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import laxity as lx
from laxity.spark.api.stream import Stream
from support import feeds, readings
from support.echo import echo

N_ROWS = 36
Results = list[Any]


@dataclass(frozen=True)
class Case:
    """A stream with the stage behind its sources, and its results in a form to compare.

    `after` adds the stage to any stream of readings, None where it must come first.
    """

    stream: Callable[[SparkSession, Path], Stream]
    results: Callable[[list[dict[str, Any]]], Results]
    after: Callable[[Stream], Stream] | None = None


def feed(
    folder: Path,
    cuts: Sequence[int],
    *,
    first: int = 0,
    last: int = N_ROWS,
    n_rows: int = N_ROWS,
    silent: str = "",
) -> int:
    """Readings of three meters, some missing and some late, and two sources that lag; in cuts.

    Rows that happened from `first` to `last` of `n_rows` hours, but for those of the source that is
    `silent`; how many readings came.
    """
    hours = [(m, h, h + m) for h in range(n_rows) for m in (1, 2, 3) if (m, h) != (1, 9)]
    late = {r: min(r[1] + 3, n_rows - 1) for r in hours if r[1] % 10 == 4 and r[0] == 2}
    came = 0
    for n, (begin, end) in enumerate(zip([first, *cuts], [*cuts, last], strict=True)):
        batch = [r for r in hours if begin <= late.get(r, r[1]) < end and silent != "meters"]
        readings.write(folder / "meters", begin, batch)
        came += len(batch)
        for lag, name in ((0, "bus"), (4, "scats")):
            seconds = [float(second) for second in range(begin, end) if silent != name]
            rows = feeds.rows([s - lag for s in seconds], seconds, first_id=1000 * lag + begin)
            feeds.write(folder / name, begin * 100 + n, rows)
    return came


def meters(spark: SparkSession, folder: Path) -> Stream:
    return readings.stream(spark, folder / "meters")


def merged(spark: SparkSession, folder: Path) -> Stream:
    inputs = [feeds.source(spark, folder / name) for name in ("bus", "scats")]
    return lx.merge(*inputs, slack=None)


def large(rows: DataFrame) -> DataFrame:
    return rows.where("kwh % 3 <> 0").withColumn("kwh", rows["kwh"] * 1)


def revised(stream: Stream) -> Stream:
    app = lx.App(readings.totals, windows=readings.TOTALS)
    return stream.revise(app, by="meter", lateness="20h", period="1h")


def of_meters(rows: list[dict[str, Any]]) -> Results:
    return sorted((row["meter"], row["_event"], row["kwh"]) for row in rows)


def of_sides(rows: list[dict[str, Any]]) -> Results:
    sides = ("bus", "scats")
    return sorted([-1 if row[side] is None else row[side]["id"] for side in sides] for row in rows)


def of_revisions(rows: list[dict[str, Any]]) -> Results:
    return sorted(readings.newest(rows).items())


def applied(stream: Stream) -> Stream:
    return stream.apply(large)


def echoed(stream: Stream) -> Stream:
    return echo(stream)


CASES: Mapping[str, Case] = {
    "apply": Case(lambda spark, at: applied(meters(spark, at)), of_meters, applied),
    "merge": Case(merged, of_sides),
    "join": Case(
        lambda spark, at: merged(spark, at).join("bus", "scats", on="area", within="3s"), of_sides
    ),
    "revise": Case(lambda spark, at: revised(meters(spark, at)), of_revisions, revised),
    "echo": Case(lambda spark, at: echoed(meters(spark, at)), of_meters, echoed),
}
