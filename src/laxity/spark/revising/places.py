"""How rows lie beside each other: their key, their time, and by what a key's rows are counted."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StructType

from laxity.core.holes import BEGINNING
from laxity.core.moment import Moment
from laxity.durations import Duration, duration_us
from laxity.errors import ConfigError
from laxity.spark.revising.marks import AT, BESIDE, DUE, KEY, US
from laxity.spark.rows.columns import quoted_name
from laxity.spark.rows.partitioning import co_partitioned
from laxity.spark.rows.runtime_literal import runtime_sql

FEW = 200_000  # rows that can be sent to every executor


@dataclass(frozen=True)
class Places:
    """Rows by key, counted by their event time or a sequence number, one row every `step`.

    Without a step they are not counted, and nobody sees what is missing.
    """

    by: tuple[str, ...]
    step: int | None = None
    number: str | None = None

    @property
    def margin_us(self) -> int:
        """How far a missing row is at least from its neighbours in time."""
        return 1 if self.number is None else 0

    @property
    def key(self) -> Column:
        """The key as one value: unlike its columns it can be compared where they are null."""
        return F.expr(self.key_text)

    @property
    def names(self) -> list[str]:
        """The key's columns, for SQL."""
        return [quoted_name(name) for name in self.by]

    @property
    def key_text(self) -> str:
        """The key as one value, as SQL."""
        return f"struct({', '.join(self.names)})"

    @property
    def columns(self) -> tuple[str, ...]:
        """What places are made of."""
        return (*self.by, "_event", *([self.number] if self.number else []))

    def of(self, rows: DataFrame) -> DataFrame:
        """The rows with their places."""
        us = "unix_micros(_event)"
        at = us if self.number is None else f"CAST({quoted_name(self.number)} AS BIGINT)"
        return rows.selectExpr("*", f"{self.key_text} AS {KEY}", f"{us} AS {US}", f"{at} AS {AT}")

    @property
    def of_key(self) -> str:
        """The rows of one key, for a window in SQL."""
        return "PARTITION BY " + ", ".join(self.names)

    def together(self, rows: DataFrame) -> DataFrame:
        """The rows with those of a key in one place."""
        return co_partitioned(rows, self.by)

    @staticmethod
    def without(rows: DataFrame) -> DataFrame:
        """The rows as they were."""
        return rows.drop(KEY, US, AT)


def hole_before(places: Places, moment: Moment) -> str:
    """What is missing before a late row that is now its key's last, as SQL; null for all others."""
    margin_us = places.margin_us
    last = f"{DUE} AND {BESIDE} IS NOT NULL AND {US} <= {runtime_sql(moment.answered_us, US)}"
    first_us = f"IF({BESIDE}.at = {BEGINNING}L, {BEGINNING}L, {BESIDE}.us + {margin_us})"
    times = f"{first_us} AS first_us, {US} - {margin_us} AS last_us"
    return f"IF({last}, struct({BESIDE}.at AS lo, {AT} AS hi, {times}), NULL)"


def places_in(
    schema: StructType, by: tuple[str, ...], period: Duration | None, sequence: str | None
) -> Places:
    """How a stream's rows lie, if it has what is asked for."""
    if not by:
        raise ConfigError("revise needs at least one column in by=")
    for name in (*by, "_event"):
        if name not in schema.names:
            there = ", ".join(schema.names)
            raise ConfigError(f"revise: column {name} is missing; there are {there}")
    if period is not None and sequence is not None:
        raise ConfigError(
            f"revise takes a period or a sequence, got both ({period}, {sequence}): state one"
        )
    if period is not None:
        if (step_us := duration_us(period, "period")) == 0:
            raise ConfigError("period must be > 0, got 0s")
        return Places(by, step_us)
    if sequence is None:
        return Places(by)
    kind = schema[sequence].dataType if sequence in schema.names else None
    if not isinstance(kind, IntegralType):
        what = "missing" if kind is None else kind.simpleString()
        raise ConfigError(f"revise: sequence {sequence} must be a whole number; it is {what}")
    return Places(by, 1, sequence)


def of_keys(rows: DataFrame, keys: DataFrame, n_keys: int) -> DataFrame:
    """The rows that have one of the keys, with what else is told of the key."""
    return rows.join(small(keys, n_keys), KEY)


def small(rows: DataFrame, n_rows: int) -> DataFrame:
    """Rows that are sent to every executor if they are few: Spark does not know how many."""
    return F.broadcast(rows) if n_rows <= FEW else rows
