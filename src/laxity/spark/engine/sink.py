"""What the batch protocol asks of a sink."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession


class Sink(Protocol):
    """Anything results can be written to."""

    @property
    def one_pass(self) -> bool:
        """Whether `write` reads all rows, once, so that numbers may ride on that job."""

    @property
    def delivery(self) -> str:
        """How often a result can come, for the contract."""

    def open(self, spark: SparkSession, checkpoint_id: str, last_id: int) -> None:
        """Check that writing will work; forget what lies beyond the last committed batch."""

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Write the results of one batch."""

    def forget(self, batch_id: int) -> None:
        """Remove what was written for a batch."""


@dataclass(frozen=True)
class OwnedSink:
    """A sink that is touched only while `check` does not raise.

    It raises once the checkpoint belongs to another process: what that has written must stay.
    """

    sink: Sink
    check: Callable[[], None]

    @property
    def one_pass(self) -> bool:
        """The sink's."""
        return self.sink.one_pass

    @property
    def delivery(self) -> str:
        """The sink's."""
        return self.sink.delivery

    def open(self, spark: SparkSession, checkpoint_id: str, last_id: int) -> None:
        """Open the sink, which forgets what lies beyond the last committed batch."""
        self.check()
        self.sink.open(spark, checkpoint_id, last_id)

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Write the results of one batch, in place of any it has."""
        self.check()
        self.sink.write(rows, batch_id)

    def forget(self, batch_id: int) -> None:
        """Remove what was written for a batch."""
        self.check()
        self.sink.forget(batch_id)

    def __str__(self) -> str:
        return str(self.sink)
