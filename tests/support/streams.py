"""Streams as a user would write them, for `laxity run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import laxity as lx
from laxity.core.slack import SlackRule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBER = 3
seen: dict[str, Any] = {}  # what `settled` was called with


def buses(
    spark: "SparkSession", seconds: int = 2, pace: Literal["flood", "live"] = "flood"
) -> lx.Stream:
    """Reports of buses."""
    reader = spark.readStream.format("laxity.trace").option("generator", "laxity.sim.workload:bus")
    reader = reader.options(pace=pace, rows_per_batch=500).option("arg.seconds", seconds)
    source = lx.source("bus", reader.load(), event_time="event", arrival="arrival")
    return lx.merge(source, slack="1s", deadline="1000d")


def started(spark: "SparkSession", folder: str, deadline: str = "1000d") -> lx.Query:
    """The same, started."""
    stream = lx.stream(buses(spark).branch.own_sources[0], deadline=deadline)
    return stream.start(
        "started",
        sink=lx.parquet(f"{folder}/out"),
        checkpoint=f"{folder}/checkpoint",
        trigger="available_now",
    )


def failing(spark: "SparkSession") -> lx.Stream:
    """A stream that stops in its first batch."""
    stream = lx.stream(buses(spark).branch.own_sources[0])
    return stream.apply(lambda rows: rows.selectExpr("raise_error('no such bus') AS bus"))


def settled(  # type: ignore[no-untyped-def]
    whole: int,
    unsaid=1.5,  # noqa: ANN001
    *,
    path: Path = Path(),
    rule: SlackRule | None = None,
    often: "Unheard | None" = None,  # type: ignore[name-defined]  # noqa: F821
    **others: str,
) -> int:
    """No stream at all."""
    seen.update(whole=whole, unsaid=unsaid, path=path, rule=rule, often=often, **others)
    return 0
