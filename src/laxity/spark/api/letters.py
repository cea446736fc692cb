"""Rows that did not make it, for those who ask."""

from pyspark.sql import DataFrame, SparkSession

from laxity.errors import StateError
from laxity.spark.api.session import session
from laxity.spark.storage.checkpoint import read_last_commit
from laxity.spark.storage.files import open_files
from laxity.spark.storage.rejected_rows import DEAD, EMPTY
from laxity.spark.storage.segments import read_table


def read_letters(checkpoint: str, kind: str = DEAD, spark: SparkSession | None = None) -> DataFrame:
    """Rows that did not make it, of any stage of a query, running or ended.

    Parameters
    ----------
    checkpoint
        The query's checkpoint folder.
    kind
        `"dead"`: rows that cannot be processed, with `_reason`. `"late"`: rows rejected as too
        late, with `late_by` in seconds.
    spark
        The session to read with; by default the active one, or a new one.

    Returns
    -------
    DataFrame
        With `batch_id`, `_source`, `_event`, `_arrival`, and the row itself as JSON in `_row`.

    Raises
    ------
    StateError
        If the folder holds no committed batch.
    """
    spark = spark or session()
    files = open_files(checkpoint, spark)
    commit = read_last_commit(files)
    if commit is None:
        raise StateError(f"{files.uri} holds no committed batch: is it a Laxity checkpoint?")
    if kind in commit.tables:
        return read_table(spark, files, commit.tables[kind])
    return spark.createDataFrame([], EMPTY[kind])
