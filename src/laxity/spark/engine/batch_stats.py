"""Observe a micro-batch: how many rows, from whom, how far, how many dead.

The numbers come from aggregates that either *ride* on the job that writes the output (no stage
needs them earlier, every row is read exactly once) or are taken from the cached rows in a pass of
their own. Either way rows stay where they are and one row of numbers reaches Python.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.progress import Heard, SourceState
from laxity.core.report import Latency
from laxity.spark.rows.columns import RANK, rank_of

_ASKED = "asked_"
ACCURACY = 1_000  # of latency percentiles: a rank is off by a thousandth at most


@dataclass(frozen=True)
class BatchStats:
    """What one micro-batch brought; `came` are the rows by input, dead ones included."""

    came: dict[str, int]
    dead: int
    heard: dict[str, Heard]

    @property
    def rows_in(self) -> int:
        """All rows."""
        return sum(self.came.values())

    @property
    def live(self) -> int:
        """The rows that can be processed."""
        return self.rows_in - self.dead


def packed(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows as they are kept: a source's name as its rank."""
    rank = F.expr(f"CAST({rank_of(names)} AS SMALLINT) AS {RANK}")
    return rows.select(rank, *(c for c in rows.columns if c != "_source"))


def named(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Kept rows with the names of their sources, too."""
    return rows.withColumn("_source", F.expr(_name_of(names)))


def _name_of(names: Sequence[str]) -> str:
    cases = "".join(f" WHEN {n} THEN '{name}'" for n, name in enumerate(names) if n)
    return f"CASE {RANK}{cases} ELSE '{names[0]}' END" if cases else f"'{names[0]}'"


def unpacked(rows: DataFrame, names: Sequence[str], without: Sequence[str] = ()) -> DataFrame:
    """Kept rows as they were, without some columns."""
    others = (c for c in rows.columns if c not in (RANK, *without))
    return rows.select(F.expr(f"{_name_of(names)} AS _source"), *others)


def live(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Of kept rows those that can be processed."""
    return unpacked(rows.where("_dead IS NULL"), names, without=("_dead", "_raw"))


def intake_columns(names: Sequence[str]) -> list[Column]:
    """The aggregates of packed rows that an Intake is made of."""
    dead = F.col("_dead")
    live_event = F.when(dead.isNull(), F.col("_event"))
    if len(names) == 1:
        columns = [(F.count(F.lit(1)), F.count(dead), F.max(live_event))]
    else:
        columns = []
        for n in range(len(names)):
            of_source = F.col(RANK) == n
            newest = F.max(F.when(of_source, live_event))
            columns.append((F.count_if(of_source), F.count(F.when(of_source, dead)), newest))
    return [
        column
        for n, (rows, lost, newest) in enumerate(columns)
        for column in (
            rows.alias(f"in_{n}"),
            lost.alias(f"dead_{n}"),
            F.unix_micros(newest).alias(f"newest_{n}"),
        )
    ]


def read_intake(names: Sequence[str], numbers: dict[str, Any]) -> BatchStats:
    """What a row of numbers says of a batch."""
    came = {name: numbers[f"in_{n}"] for n, name in enumerate(names)}
    dead = [numbers[f"dead_{n}"] for n in range(len(names))]
    heard = {
        name: Heard(n_rows=came[name] - dead[n], newest_us=numbers[f"newest_{n}"])
        for n, name in enumerate(names)
    }
    return BatchStats(came, sum(dead), heard)


def asked_columns(numbers: Mapping[str, str]) -> list[Column]:
    """What the first stage asks to know of the live rows, beside what the intake counts."""
    live = "FILTER (WHERE _dead IS NULL)"
    return [F.expr(f"{text} {live} AS {_ASKED}{name}") for name, text in numbers.items()]


@dataclass(frozen=True)
class Intake:
    """The rows of a batch that a branch takes in: those that live; `rows` gives all of them.

    The rest is known once a job has read them all, and found out when it is first asked for.
    """

    live: DataFrame
    rows: Callable[[], DataFrame]
    observed: Callable[[], dict[str, Any]]
    names: tuple[str, ...]
    advance: Callable[[dict[str, Heard]], dict[str, SourceState]]

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """What was observed."""
        return self.observed()

    @cached_property
    def stats(self) -> BatchStats:
        """What the batch brought."""
        return read_intake(self.names, self.numbers)

    @cached_property
    def asked(self) -> dict[str, Any]:
        """What the first stage asked to know."""
        asked = {n.removeprefix(_ASKED): v for n, v in self.numbers.items() if n.startswith(_ASKED)}
        return asked | {"n_rows": self.stats.live}

    @cached_property
    def progress(self) -> dict[str, SourceState]:
        """How far every input has come, this batch included."""
        return self.advance(self.stats.heard)


def n_results() -> Column:
    """How many rows there are."""
    return F.count(F.lit(1)).alias("n_results")


def arrival_columns(constant: bool) -> list[Column]:
    """Aggregates of when rows arrived; a `constant` arrival needs no percentiles."""
    oldest = F.unix_micros(F.min("_arrival")).alias("oldest")
    if constant:
        return [oldest]
    ranks = F.percentile_approx("_arrival", [0.5, 0.01], ACCURACY)
    return [oldest, F.transform(ranks, F.unix_micros).alias("ranks")]


def read_latency(
    numbers: dict[str, Any], emitted_us: int, of_results: bool, n_results: int
) -> Latency | None:
    """How long results took, from the arrivals of their rows; None without any."""
    oldest_us = numbers.get("oldest")
    if oldest_us is None or (of_results and not n_results):
        return None
    half_us, first_us = numbers.get("ranks") or (oldest_us, oldest_us)
    return Latency(
        p50_s=(emitted_us - half_us) / 1e6,
        p99_s=(emitted_us - first_us) / 1e6,
        max_s=(emitted_us - oldest_us) / 1e6,
        of="results" if of_results else "input",
    )
