"""The newest revision of every result."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from laxity.errors import ConfigError
from laxity.spark.rows.results import KEY, RETRACTED


def latest(results: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """The newest revision of every result, per key and window; one that was retracted is none.

    Parameters
    ----------
    results
        Results with `_revision`, as a sink's folder or table holds them.
    by
        The columns that name a result; by default those its stage marked as such, which Parquet
        keeps.

    Returns
    -------
    DataFrame
        One row for each result that there is, with all columns.

    Raises
    ------
    ConfigError
        If no columns name a result, or there is no `_revision`.
    """
    names = [by] if isinstance(by, str) else list(by or ())
    names = names or [field.name for field in results.schema if field.metadata.get(KEY)]
    if not names or not {*names, "_revision"} <= set(results.columns):
        raise ConfigError(
            f"latest needs the columns that name a result, and _revision: say by=[…]; "
            f"got by={names}, there are {', '.join(results.columns)}"
        )
    newest = Window.partitionBy(*names).orderBy(F.col("_revision").desc())
    ranked = results.withColumn("_rank", F.row_number().over(newest))
    last = ranked.where("_rank = 1").drop("_rank")
    return last.where(F.col("_status") != RETRACTED) if "_status" in last.columns else last
