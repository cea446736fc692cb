"""Evaluate again what late rows change, and tell what is new about it.

The affected results are evaluated twice on the rows they depend on: with the rows that are due and
without them, which is what had been answered. Only what differs is given out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from laxity.core.moment import Moment
from laxity.spark.app import App, Evaluation
from laxity.spark.changing import changing, changing_in
from laxity.spark.known import OLD
from laxity.spark.lates import DUE, LATE, Lates, as_came
from laxity.spark.latest import RETRACTED
from laxity.spark.places import KEY, US, Places, small

REVISED, TENTATIVE, FINAL = "revised", "tentative", "final"


@dataclass(frozen=True)
class Replay:
    """An app, how it is evaluated, and the rows that are due."""

    app: App
    evaluate: Evaluation
    places: Places
    moment: Moment
    lates: Lates

    def older(self) -> DataFrame:
        """The rows that the affected results depend on, but those since the last span."""
        old = F.col(US) <= changing(self.moment.answered_us)
        return as_came(self._slices(f"{DUE} OR {OLD}").where(old))

    def asked(self, results: DataFrame, wanted: Column) -> DataFrame:
        """Of results those that are affected, and those wanted anyway."""
        there = results.withColumn(KEY, self.places.key).join(self._times(), KEY, "left")
        return there.where(wanted | self._touched()).select(*results.columns)

    def before(self) -> DataFrame:
        """The affected results without the rows."""
        rows = self.places.without(as_came(self._slices(OLD)))
        return self.asked(self.evaluate(rows), F.lit(False))

    def changes(self, after: DataFrame, before: DataFrame, given: DataFrame | None) -> DataFrame:
        """The results that the rows make new, other or void, with status and revision.

        `after` and `before` are the affected results with the rows and without, `given` what was
        given out again before.
        """
        names = self.app.naming(self.places.by)
        sides = [_as_one(after, names, "_after"), _as_one(before, names, "_before")]
        both = (
            sides[0]
            .unionByName(sides[1], allowMissingColumns=True)
            .groupBy(*names)
            .agg(*(F.expr(f"first({side}, true)").alias(side) for side in ("_before", "_after")))
        )
        return _revised(both.where(~_same(both)), names, given)

    def _slices(self, which: str) -> DataFrame:
        return self.lates.doubt.rows.where(which).where(self._needed())

    def _times(self) -> DataFrame:
        """When the rows that are due happened, by key."""
        keys = self.lates.due().groupBy(*self.places.names)
        times = keys.agg(F.expr(f"first({LATE})").alias(LATE))
        return small(times.select(self.places.key.alias(KEY), LATE), self.lates.doubt.n_keys)

    def _needed(self) -> Column:
        """Whether a row belongs to a slice: overlapping slices of a key are one."""
        span_us = self.moment.span_us
        until = f"{self._until()} + {span_us}"
        return F.expr(f"exists({LATE}, late -> {US} > late - {span_us} AND {US} < {until})")

    def _until(self) -> str:
        """The last result that a late row changes and that was answered before."""
        return f"least(late, {changing_in(self.moment.answered_us, 'late')})"

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
    told = [name for name in _values(both) if name != "_arrival"]
    sides = [F.struct(*(F.col(side)[name] for name in told)) for side in ("_before", "_after")]
    return sides[0] == sides[1]


def _values(both: DataFrame) -> list[str]:
    return cast(StructType, both.schema["_after"].dataType).names


def _revised(changed: DataFrame, names: Sequence[str], given: DataFrame | None) -> DataFrame:
    """Changed results with status and revision, given what was given out before."""
    if given is None:
        changed = changed.withColumn("_given", F.expr("CAST(NULL AS INT)"))
    else:
        last = given.groupBy("_name").agg(F.max("_revision").alias("_given"))
        changed = changed.withColumn("_name", F.struct(*names)).join(last, "_name", "left")
    first = "_before IS NULL AND _given IS NULL"
    void = f"IF(_after IS NULL, '{RETRACTED}', '{REVISED}')"
    return changed.select(
        *names,
        *(F.col("_after")[name].alias(name) for name in _values(changed) if name != "_"),
        F.expr(f"IF({first}, '{TENTATIVE}', {void})").alias("_status"),
        F.expr(f"IF({first}, 0, coalesce(_given, 0) + 1)").alias("_revision"),
    )


def given_again(changed: DataFrame, names: Sequence[str]) -> DataFrame:
    """What to remember of changed results: their last revision, if it is not the first."""
    again = changed.where(F.col("_revision") > 0)
    return again.select(F.struct(*names).alias("_name"), "_revision", "_event")
