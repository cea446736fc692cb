"""As many tasks as there is work for.

Rows from several sources and state segments come in many small partitions, and every task costs
some milliseconds: more than it takes to work on a small batch.
"""

from pyspark.sql import DataFrame

ONE_TASK = 100_000  # rows that one task is done with sooner than several are started


def gathered(rows: DataFrame, n_rows: int) -> DataFrame:
    """The rows in one partition if they are few, else in no more than there are cores."""
    cores = rows.sparkSession.sparkContext.defaultParallelism
    return rows.coalesce(1 if n_rows <= ONE_TASK else cores)
