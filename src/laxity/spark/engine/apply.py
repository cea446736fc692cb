"""The user's own function of a batch's rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import DataFrame

from laxity.errors import ConfigError
from laxity.spark.engine.draft import Draft
from laxity.spark.engine.planned import Needs, Planned, StageResult
from laxity.spark.engine.row_by_row import check_row_by_row
from laxity.spark.engine.stage import BatchContext, Stage
from laxity.spark.jvm.plans import analyzed_plan

S = TypeVar("S", bound=Draft)


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


def apply(stream: S, fn: Callable[[DataFrame], DataFrame], *, per_batch: bool = False) -> S:
    """Add a function of the rows, each by itself; it is tried on an empty batch at once.

    It gets the rows of one batch after the other, so one that combines rows (`groupBy`,
    `distinct`, a window function, `limit`, `orderBy`, a join of the rows with themselves …)
    would give partial results, and is refused; with static tables it may do as it likes.

    Parameters
    ----------
    stream
        The stream itself.
    fn
        Gets a DataFrame and gives one.
    per_batch
        It means each batch by itself, and may combine the rows of one.

    Returns
    -------
    Stream
        With the columns that the function gives.

    Raises
    ------
    ConfigError
        If the function fails on the stream's columns, gives no DataFrame, or combines rows.
    """
    stage = Apply(fn, position=len(stream.stages) + 1, per_batch=per_batch)
    empty = stream.empty
    try:
        result = fn(empty)
    except Exception as error:
        raise ConfigError(
            f"apply({stage.called}) fails on the stream's columns "
            f"({', '.join(stream.schema.names)}): {error}"
        ) from error
    if not isinstance(result, DataFrame):
        raise ConfigError(
            f"apply({stage.called}) must give a DataFrame, got {type(result).__name__}"
        )
    if not per_batch:
        check_row_by_row(stage.called, analyzed_plan(result), analyzed_plan(empty))
    return stream.then(stage, result.schema)
