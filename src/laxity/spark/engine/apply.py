"""The user's own function of a batch's rows."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from laxity.spark.engine.planned import Needs, Planned, StageResult
from laxity.spark.engine.stage import BatchContext, Stage


@dataclass(frozen=True)
class Apply(Stage):
    """What enters it is released to the user; what comes out is the user's."""

    fn: Callable[[DataFrame], DataFrame]
    position: int
    per_batch: bool = False

    makes_rows = True

    @property
    def name(self) -> str:
        """Its place in the pipeline, so that two of them keep apart."""
        return f"apply-{self.position}"

    @property
    def terms(self) -> str:
        """The function's name, and whether it is one of each batch by itself."""
        return f"{self.called}, each batch by itself" if self.per_batch else self.called

    @property
    def called(self) -> str:
        """The function's name."""
        return getattr(self.fn, "__name__", type(self.fn).__name__)

    def needs(self, state: dict[str, object]) -> Needs:
        """Rows of a merge are handed over as they were read."""
        return Needs(ordered=True)

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        """The function's result."""
        return Planned(self.fn(rows), lambda counts, before: StageResult())
