"""Rows at hand as one leaf of a plan: Spark knows their columns and where they lie, and no more.

Else it knows their size, estimated from what they were made of, and all they were filtered by. Over
the batches, rows of one made of the last one's, both grow without bound. And a union has another
plan and other generated code for every number of its parts, while a leaf is always the same.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from laxity.spark.jvm.spark_version import spark_version

_NEWER = () if spark_version() < (4, 3) else (False,)  # one more argument of a leaf


@dataclass(frozen=True)
class RddLeaf:
    """Columns, rows and the place of each, as Spark has them."""

    spark: SparkSession
    schema: StructType
    _columns: Any
    _rdd: Any
    _laid: Any

    @staticmethod
    def copied(rows: DataFrame) -> "RddLeaf":
        """Rows that are at hand, or will be."""
        plan = rows._jdf.queryExecution().analyzed()
        return RddLeaf._of(rows, plan.output(), plan.rdd(), plan.outputPartitioning())

    @staticmethod
    def made(rows: DataFrame) -> "RddLeaf":
        """Rows that are made anew for every job, by a plan that is made once."""
        query = rows._jdf.queryExecution()
        laid = query.executedPlan().outputPartitioning()
        return RddLeaf._of(rows, query.analyzed().output(), query.toRdd(), laid)

    @staticmethod
    def _of(rows: DataFrame, columns: Any, rdd: Any, laid: Any) -> "RddLeaf":
        return RddLeaf(rows.sparkSession, rows.schema, columns, rdd, laid)

    @property
    def rows(self) -> DataFrame:
        """The rows."""
        session, java = self.spark._jsparkSession, _java(self.spark._jvm)
        known = self._columns, self._rdd, self._laid, java.in_no_order, False, java.nothing
        plan = java.leaf(*known, session, java.nothing, java.nothing, *_NEWER)
        return DataFrame(java.rows(session, plan), self.spark)

    @property
    def place(self) -> str:
        """What decides where a row lies."""
        return re.sub(r"#\d+L?", "", self._laid.toString())

    def compute(self) -> None:
        """Run a job that reads them all; nothing is planned for it."""
        self._rdd.count()


def rows_of(leaves: Sequence[RddLeaf]) -> DataFrame:
    """All rows; where each key has its place in all leaves, it has it still.

    Columns that are not alike in all of them, as to what may be null, may be null.
    """
    first, *others = leaves
    if not others:
        return first.rows
    if len({leaf.place for leaf in leaves}) > 1 or not first.place.startswith("hashpart"):
        return reduce(DataFrame.union, (leaf.rows for leaf in leaves))
    java, n_places, columns = _java(first.spark._jvm), first._rdd.getNumPartitions(), first._columns
    if any(leaf.schema != first.schema for leaf in others):
        each = [_nullable(columns.apply(n)) for n in range(columns.size())]
        columns = java.seq(each)
    rdds, kind = java.seq([leaf._rdd for leaf in leaves]), first._rdd.elementClassTag()
    all_rows = java.union(first._rdd.context(), rdds, n_places, kind)
    return replace(first, _columns=columns, _rdd=all_rows).rows


@dataclass(frozen=True)
class _Java:
    """What leaves are made with; to look up a class takes a call for each part of its name."""

    leaf: Any
    rows: Any
    union: Any
    seq: Any
    in_no_order: Any
    nothing: Any


@lru_cache(maxsize=1)
def _java(jvm: Any) -> _Java:
    spark, seq = jvm.org.apache.spark, jvm.PythonUtils.toSeq
    return _Java(
        leaf=spark.sql.execution.LogicalRDD,
        rows=spark.sql.classic.Dataset.ofRows,
        union=spark.rdd.SQLPartitioningAwareUnionRDD,
        seq=seq,
        in_no_order=seq([]),
        nothing=jvm.scala.Option.empty(),
    )


def _nullable(column: Any) -> Any:
    """The column, as one that may be null, and whatever is in it."""
    return column.withNullability(True).withDataType(column.dataType().asNullable())
