"""Rows at hand as one leaf of a plan: Spark knows their columns and where they lie, and no more.

Else it knows their size, estimated from what they were made of, and all they were filtered by. Over
the batches, rows of one made of the last one's, both grow without bound. And a union has another
plan and other generated code for every number of its parts, while a leaf is always the same.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Leaf:
    """Columns, rows and the place of each, as Spark has them."""

    spark: SparkSession
    columns: Any
    schema: StructType
    rdd: Any
    laid: Any

    @staticmethod
    def copied(rows: DataFrame) -> "Leaf":
        """Rows that are at hand, or will be."""
        plan = rows._jdf.queryExecution().analyzed()
        return Leaf._of(rows, plan.output(), plan.rdd(), plan.outputPartitioning())

    @staticmethod
    def made(rows: DataFrame) -> "Leaf":
        """Rows that are made anew for every job, by a plan that is made once."""
        query = rows._jdf.queryExecution()
        laid = query.executedPlan().outputPartitioning()
        return Leaf._of(rows, query.analyzed().output(), query.toRdd(), laid)

    @staticmethod
    def _of(rows: DataFrame, columns: Any, rdd: Any, laid: Any) -> "Leaf":
        return Leaf(rows.sparkSession, columns, rows.schema, rdd, laid)

    @property
    def rows(self) -> DataFrame:
        """The rows."""
        session, jvm = self.spark._jsparkSession, self.spark._jvm
        assert jvm is not None
        sql, nothing = jvm.org.apache.spark.sql, jvm.scala.Option.empty()
        in_order = jvm.PythonUtils.toSeq([])
        known = self.columns, self.rdd, self.laid, in_order, False, nothing
        plan = sql.execution.LogicalRDD(*known, session, nothing, nothing, False)
        return DataFrame(sql.classic.Dataset.ofRows(session, plan), self.spark)

    @property
    def place(self) -> str:
        """What decides where a row lies."""
        return re.sub(r"#\d+L?", "", self.laid.toString())


def rows_of(leaves: Sequence[Leaf]) -> DataFrame:
    """All rows; where each key has its place in all leaves, it has it still.

    Columns that are not alike in all of them, as to what may be null, may be null.
    """
    first, *others = leaves
    if not others:
        return first.rows
    if len({leaf.place for leaf in leaves}) > 1 or not first.place.startswith("hashpart"):
        return reduce(DataFrame.union, (leaf.rows for leaf in leaves))
    jvm, n_places = first.spark._jvm, first.rdd.getNumPartitions()
    assert jvm is not None
    columns = first.columns
    if any(leaf.schema != first.schema for leaf in others):
        each = [_nullable(columns.apply(n)) for n in range(columns.size())]
        columns = jvm.PythonUtils.toSeq(each)
    rdds = jvm.PythonUtils.toSeq([leaf.rdd for leaf in leaves])
    context, kind = first.spark.sparkContext._jsc.sc(), first.rdd.elementClassTag()
    all_rows = jvm.org.apache.spark.rdd.SQLPartitioningAwareUnionRDD(context, rdds, n_places, kind)
    return replace(first, columns=columns, rdd=all_rows).rows


def _nullable(column: Any) -> Any:
    """The column, as one that may be null, and whatever is in it."""
    return column.withNullability(True).withDataType(column.dataType().asNullable())
