"""Evaluate again what late rows change, and tell what is new about it.

The affected results are evaluated twice on the rows they depend on: with the rows that are due and
without them, which is what had been answered. Only what differs is given out.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.moment import Moment
from laxity.spark.app import App
from laxity.spark.lates import DUE
from laxity.spark.latest import RETRACTED
from laxity.spark.places import KEY, US, Places, small

REVISIONS = "revisions"
REVISED, TENTATIVE, FINAL = "revised", "tentative", "final"
LATE = "_late"  # the times of a key's rows that are due


def late_times(due: DataFrame) -> DataFrame:
    """Per key, when the rows that are due happened."""
    return due.groupBy(KEY).agg(F.collect_set(US).alias(LATE))


def slices(rows: DataFrame, times: DataFrame, n_keys: int, moment: Moment) -> DataFrame:
    """The rows that the affected results depend on; overlapping slices of a key are one."""
    span_us, answered_us = moment.span_us, moment.answered_us
    us = F.col(US)
    needed = F.exists(
        LATE,
        lambda late: (us > late - span_us) & (us < F.least(late, F.lit(answered_us)) + span_us),
    )
    return rows.join(small(times, n_keys), KEY).where(needed).drop(LATE)


def changes(
    app: App,
    places: Places,
    rows: DataFrame,
    times: DataFrame,
    n_keys: int,
    revisions: DataFrame | None,
    moment: Moment,
) -> DataFrame:
    """The results that these rows make new, other or void, with status and revision.

    `rows` are slices and tell in `_due` which of them are late; `revisions` is what was given out
    again before.
    """
    names = app.naming(places.by)

    def answered(some: DataFrame, side: str) -> DataFrame:
        results = app.results(places.without(some).drop(DUE), places.by)
        values = [name for name in results.columns if name not in names]
        there = _affected(results, places, times, n_keys, moment)
        return there.select(*names, F.struct(F.lit(1).alias("_"), *values).alias(side))

    before = answered(rows.where(~F.col(DUE)), "_before")
    after = answered(rows, "_after")
    both = (
        after.unionByName(before, allowMissingColumns=True)
        .groupBy(*names)
        .agg(*(F.first(side, ignorenulls=True).alias(side) for side in ("_before", "_after")))
    )
    changed = both.where(~_same(both))
    return _revised(changed, names, revisions)


def _affected(
    results: DataFrame, places: Places, times: DataFrame, n_keys: int, moment: Moment
) -> DataFrame:
    """The results that a late row can change, of those answered before."""
    span_us, answered_us = moment.span_us, moment.answered_us
    us = F.unix_micros("_event")
    touched = F.exists(
        LATE, lambda late: (us > late - span_us) & (us <= F.least(late, F.lit(answered_us)))
    )
    placed = results.withColumn(KEY, places.key)
    return placed.join(small(times, n_keys), KEY).where(touched).drop(KEY, LATE)


def _same(both: DataFrame) -> Column:
    """Whether a result is what it was; when its rows arrived is no part of it."""
    fields = both.schema["_after"].dataType.fieldNames()  # type: ignore[attr-defined]
    told = [name for name in fields if name != "_arrival"]
    sides = [F.struct(*(F.col(side)[name] for name in told)) for side in ("_before", "_after")]
    return sides[0] == sides[1]


def _revised(changed: DataFrame, names: Sequence[str], revisions: DataFrame | None) -> DataFrame:
    before: Column = F.lit(None).cast("int")
    if revisions is not None:
        key = F.struct(*names)
        last = revisions.groupBy("_name").agg(F.max("_revision").alias("_given"))
        changed = changed.withColumn("_name", key).join(last, "_name", "left").drop("_name")
        before = F.col("_given")
    first = F.col("_before").isNull() & before.isNull()
    status = F.when(first, TENTATIVE).when(F.col("_after").isNull(), RETRACTED).otherwise(REVISED)
    revision = F.when(first, 0).otherwise(F.coalesce(before, F.lit(0)) + 1)
    fields = changed.schema["_after"].dataType.fieldNames()  # type: ignore[attr-defined]
    values = [F.col("_after")[name].alias(name) for name in fields if name != "_"]
    return changed.select(*names, *values, status.alias("_status"), revision.alias("_revision"))


def given_again(changed: DataFrame, names: Sequence[str]) -> DataFrame:
    """What to remember of changed results: their last revision, if it is not the first."""
    again = changed.where(F.col("_revision") > 0)
    return again.select(F.struct(*names).alias("_name"), "_revision", "_event")
