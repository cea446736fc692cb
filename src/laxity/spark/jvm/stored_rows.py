"""The rows behind a local checkpoint, until somebody lets go of them.

A checkpoint in Python is rows like any others: how to compute them without a plan, and how to let
go of them, only Java knows.
"""

from pyspark.sql import DataFrame


class StoredRows:
    """Where a local checkpoint keeps its rows."""

    def __init__(self, checkpointed: DataFrame) -> None:
        self._rdd = checkpointed._jdf.queryExecution().analyzed().rdd()

    def compute(self) -> None:
        """Run a job that reads them all, and so keeps them; nothing is planned for it."""
        self._rdd.count()

    def release(self) -> None:
        """Let go of them, without waiting until they are gone."""
        self._rdd.unpersist(False)
