"""As many tasks as there is work for.

Rows from several sources and state segments come in many small partitions, and every task costs
some milliseconds: more than it takes to work on a small batch.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.spark.rows.columns import quoted
from laxity.spark.rows.runtime_literal import runtime_literal

ONE_TASK = 100_000  # rows that one task is done with sooner than several are started

YEAR_ONE_US = -62_135_596_800_000_000  # no timestamp is older


def coalesced(rows: DataFrame, n_rows: int) -> DataFrame:
    """The rows in one partition if they are few, else in no more than there are cores."""
    cores = rows.sparkSession.sparkContext.defaultParallelism
    return rows.coalesce(1 if n_rows <= ONE_TASK else cores)


def co_partitioned(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows with those of a key in one place: whatever is worked out by key stays there."""
    cores = rows.sparkSession.sparkContext.defaultParallelism
    return rows.repartition(cores, *map(quoted, key))


def in_order(
    rows: DataFrame, order: Sequence[Column], n_rows: int, span_us: tuple[int | None, int | None]
) -> DataFrame:
    """The rows sorted, the first partition's first.

    Most of them have their events in the span, so each partition takes an equal part of it; Spark
    itself would read all rows once more, to find out where to cut.
    """
    from_us, to_us = span_us
    if n_rows <= ONE_TASK:
        return rows.sortWithinPartitions(*order)
    if from_us is None or to_us is None or from_us < YEAR_ONE_US:
        return rows.orderBy(*order)
    cores = rows.sparkSession.sparkContext.defaultParallelism
    past_us = F.greatest(F.unix_micros("_event") - runtime_literal(from_us), F.lit(0))
    part = F.least(
        F.floor(past_us * cores / runtime_literal(to_us - from_us + 1)), F.lit(cores - 1)
    )
    return rows.repartitionById(cores, part.cast("int")).sortWithinPartitions(*order)
