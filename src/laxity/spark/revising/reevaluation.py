"""Evaluate again what late rows change, and tell what is new about it.

The affected results are evaluated on the rows they depend on, those that are due among them, and
compared with what was answered before: answers that are not final are kept for it. Only what
differs is given out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from laxity.core.moment import Moment
from laxity.spark.revising.app import OWN, App
from laxity.spark.revising.holes import Keys
from laxity.spark.revising.late_rows import LateRows, as_came
from laxity.spark.revising.marks import DUE, KEY, LATE, OLD, US
from laxity.spark.revising.places import Places, small
from laxity.spark.rows.results import FINAL, RETRACTED, REVISED, TENTATIVE
from laxity.spark.rows.runtime_literal import runtime_literal, runtime_sql


@dataclass(frozen=True)
class Replay:
    """An app, the rows that are due, and what is known of their keys."""

    app: App
    places: Places
    moment: Moment
    late_rows: LateRows
    keys: Keys

    def older(self) -> DataFrame:
        """The rows that the affected results depend on, but those since the last span."""
        old = F.col(US) <= runtime_literal(self.moment.answered_us)
        return as_came(self._slices(f"{DUE} OR {OLD}").where(old))

    def asked(self, results: DataFrame, wanted: Column, status: Column) -> DataFrame:
        """Of results those that are affected, and those wanted anyway, with status."""
        keys = self.keys.rows.drop(*self.places.by)
        there = self._with_keys(results, keys, "left")
        return there.where(wanted | self._touched()).select(*results.columns, status)

    def _with_keys(self, results: DataFrame, keys: DataFrame, how: str) -> DataFrame:
        keyed = results.withColumn(KEY, self.places.key)
        return keyed.join(small(keys, self.keys.n_keys), KEY, how)

    def changes(self, after: DataFrame, given: DataFrame | None) -> DataFrame:
        """The results that the rows make new, other or void, with status and revision.

        `after` are the affected results with the rows, `given` the answers kept.
        """
        names = self.app.naming(self.places.by)
        both = _as_one(after, names, "_after")
        value = both.schema["_after"].dataType
        last = [F.lit(None).cast(value), F.lit(None).cast("int")]
        if given is not None:
            before = self._with_keys(given, self.keys.rows.select(KEY, LATE), "inner")
            before = before.where(self._touched()).drop(KEY, LATE)
            before = before.withColumnRenamed("_value", "_before")
            both = both.unionByName(before, allowMissingColumns=True)
            last = [F.expr("max_by(_before, _revision)"), F.expr("max(_revision)")]
        both = both.groupBy(*names).agg(
            F.expr("first(_after, true) AS _after"),
            last[0].alias("_before"),
            last[1].alias("_revision"),
        )
        return self._revised(both.where(~_same(both)), names)

    def _revised(self, changed: DataFrame, names: Sequence[str]) -> DataFrame:
        """Changed results with status and revision; the last revision given is with them."""
        void = f"IF(_after IS NULL, '{RETRACTED}', '{REVISED}')"
        first = FINAL if self.moment.drains else TENTATIVE
        return changed.select(
            *names,
            *(F.col("_after")[name].alias(name) for name in _values(changed) if name != "_"),
            F.expr(f"IF(_revision IS NULL, '{first}', {void})").alias("_status"),
            F.expr("coalesce(_revision + 1, 0)").alias("_revision"),
        )

    def _slices(self, which: str) -> DataFrame:
        return self.late_rows.suspect_rows.rows.where(which).where(self._needed())

    def _needed(self) -> Column:
        """Whether a row belongs to a slice: overlapping slices of a key are one."""
        span_us = self.moment.span_us
        until = f"{self._until()} + {span_us}"
        return F.expr(f"exists({LATE}, late -> {US} > late - {span_us} AND {US} < {until})")

    def _until(self) -> str:
        """The last result that a late row changes and that was answered before."""
        return f"least(late, {runtime_sql(self.moment.answered_us, 'late')})"

    def _touched(self) -> Column:
        """Whether a result is affected, and was answered before."""
        us, span_us = "unix_micros(_event)", self.moment.span_us
        touched = f"exists({LATE}, late -> {us} > late - {span_us} AND {us} <= {self._until()})"
        return F.expr(f"coalesce({touched}, false)")


def _as_one(results: DataFrame, names: Sequence[str], side: str) -> DataFrame:
    """The results with their values as one."""
    values = [name for name in results.columns if name not in names]
    return results.select(*names, F.struct(F.lit(1).alias("_"), *values).alias(side))


def _same(both: DataFrame) -> Column:
    """Whether a result is what it was; when its rows arrived is no part of it."""
    results = [name for name in _values(both) if name != "_arrival"]
    sides = [F.struct(*(F.col(side)[name] for name in results)) for side in ("_before", "_after")]
    return sides[0] == sides[1]


def _values(both: DataFrame) -> list[str]:
    return cast(StructType, both.schema["_after"].dataType).names


def may_change(results: DataFrame, names: Sequence[str]) -> DataFrame:
    """What to keep of results that are given out: those that are not final, as they are now."""
    values = [name for name in results.columns if name not in (*names, *OWN)]
    value = F.struct(F.lit(1).alias("_"), *values)
    there = F.when(F.col("_status") != RETRACTED, value).alias("_value")
    return results.where(F.col("_status") != FINAL).select(*names, there, "_revision")
