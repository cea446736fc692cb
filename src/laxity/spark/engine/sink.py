"""What the batch protocol asks of a sink."""

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession


class Sink(Protocol):
    """Anything results can be written to.

    `one_pass`: `write` reads all rows, once, so numbers may ride on that job.
    """

    one_pass: bool
    delivery: str

    def open(self, spark: SparkSession, checkpoint_id: str, last_id: int) -> None:
        """Check that writing will work; forget what lies beyond the last committed batch."""

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Write the results of one batch."""

    def forget(self, batch_id: int) -> None:
        """Remove what was written for a batch."""
