"""Rows that did not make it, kept with the reason.

Two tables of a checkpoint: `dead` holds rows that cannot be processed (`_reason` says why), `late`
those rejected as too late (`late_by`, in seconds). Both keep the row itself as JSON in `_row`, so
that sources of any shape fit and nothing is lost.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from laxity.errors import StateError
from laxity.spark.checkpoint import read_last_commit
from laxity.spark.files import open_files
from laxity.spark.intake import riding
from laxity.spark.state import Tables, read_table

DEAD = "dead"
LATE = "late"


def dead_rows(rows: DataFrame, batch_id: int) -> DataFrame:
    """The dead letters among the rows of a batch, as the table keeps them."""
    return rows.where(F.col("_dead").isNotNull()).select(
        F.lit(batch_id).cast("bigint").alias("batch_id"),
        "_source",
        F.col("_dead").alias("_reason"),
        "_event",
        "_arrival",
        F.col("_raw").alias("_row"),
    )


def late_rows(rows: DataFrame, batch_id: int) -> DataFrame:
    """Rows a stage rejected as too late, as the table keeps them."""
    own = ("_source", "_event", "_arrival", "_seq", "late_by")
    user = F.struct(*(name for name in rows.columns if name not in own))
    return rows.select(
        F.lit(batch_id).cast("bigint").alias("batch_id"),
        "_source",
        F.col("late_by").cast("double").alias("late_by"),
        "_event",
        "_arrival",
        F.to_json(user, {"ignoreNullFields": "false"}).alias("_row"),
    )


def post(tables: Tables, kind: str, letters: DataFrame) -> Callable[[], int]:
    """Plan to add letters to their table; ask after the write how many were written."""
    observed, seen = riding(letters, [F.count(F.lit(1)).alias("n_letters")])
    tables.append(kind, observed)
    return lambda: int(seen.get["n_letters"])


def read_letters(checkpoint: str, kind: str = DEAD, spark: SparkSession | None = None) -> DataFrame:
    """The dead letters (`kind="dead"`) or late rejections (`kind="late"`) of a checkpoint."""
    from laxity.spark.session import session

    spark = spark or session()
    files = open_files(checkpoint, spark)
    commit = read_last_commit(files)
    if commit is None:
        raise StateError(f"{files.uri} holds no committed batch: is it a Laxity checkpoint?")
    if kind in commit.tables:
        return read_table(spark, files, kind, commit.tables[kind])
    return spark.createDataFrame([], EMPTY[kind])


EMPTY = {
    DEAD: "batch_id bigint, _source string, _reason string, _event timestamp, _arrival timestamp, "
    "_row string",
    LATE: "batch_id bigint, _source string, late_by double, _event timestamp, _arrival timestamp, "
    "_row string",
}
