"""Which columns of a stream's rows an app uses: no others are kept for it.

An app is a function, so it is asked: given a stream it can only say what is to be done, and what
Spark makes of that for a batch names the columns it needs. If it does more than say, as one that
counts its rows on the way, nobody knows, and all are kept.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from laxity.spark.jvm.columns_read import columns_read
from laxity.spark.revising.app import App
from laxity.spark.rows.columns import OWN, quoted, quoted_name


@dataclass(frozen=True)
class PrunedColumns:
    """The columns that are kept of a stream's rows; the others read as null."""

    schema: StructType
    names: tuple[str, ...]

    def narrow(self, rows: DataFrame) -> DataFrame:
        """The rows as they are kept."""
        return rows.select(*map(quoted, self.names))

    @property
    def much(self) -> bool:
        """Whether most columns that the user gave are kept."""
        given = [name for name in self.schema.names if name not in OWN]
        return 2 * len(set(given) & set(self.names)) >= len(given)

    def widen(self, rows: DataFrame) -> DataFrame:
        """Kept rows with all columns."""
        return rows.selectExpr(*self._wide)

    @cached_property
    def _wide(self) -> list[str]:
        """All columns as SQL, which takes one call of Java where expressions take many."""
        there = set(self.names)
        return [
            quoted_name(field.name)
            if field.name in there
            else f"CAST(NULL AS {_sql(field.dataType)}) AS {quoted_name(field.name)}"
            for field in self.schema
        ]


def columns_used_by(app: App, empty: DataFrame, always: tuple[str, ...]) -> PrunedColumns:
    """What the app uses of such rows, and what is needed `always`."""
    names = always + tuple(_read_by(app, empty))
    return PrunedColumns(empty.schema, tuple(n for n in empty.columns if n in names))


def _read_by(app: App, empty: DataFrame) -> list[str]:
    if app.own_query or not _only_says(app, empty.sparkSession, empty.schema):
        return empty.columns
    read = columns_read(app.fn(_may_be_null(empty)))
    return empty.columns if read is None else sorted(read)


def _only_says(app: App, spark: SparkSession, schema: StructType) -> bool:
    """Whether the app runs no job by itself: on a stream it could not."""
    stream = spark.readStream.format("rate").load()
    try:
        app.fn(stream.select(*(_null(field.name, field.dataType) for field in schema)))
    except Exception:
        return False
    return True


def _may_be_null(empty: DataFrame) -> DataFrame:
    """Rows of which Spark cannot say that they count whatever is in them: kept ones may be null."""
    schema = StructType([StructField(field.name, field.dataType) for field in empty.schema])
    return empty.sparkSession.createDataFrame([], schema)


def _sql(kind: DataType) -> str:
    return StructType([StructField("c", kind)]).toDDL().removeprefix("c ")


def _null(name: str, kind: Any) -> Column:
    return F.lit(None).cast(kind).alias(name)
