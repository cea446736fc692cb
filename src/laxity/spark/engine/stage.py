"""A stage: what happens to the rows of every micro-batch between intake and sink.

Two steps. `plan` gets the rows and a `BatchContext`, builds DataFrames, plans state tables and says
what has to be counted; it may begin jobs beside the others and wait for them. Then the engine lets
the results be written, and with them everything that rides on those jobs. `finish` gets the counts
and says what the batch came to: state, fates, report, promises, rows it rejects. It may still add
tables. The engine decides when each step runs and when anything becomes durable, so a stage writes
nothing itself, and must answer alike when it is called again for the same batch after a crash.

What a stage `needs` of its rows it gets wherever it stands: numbers about them before it decides,
a key's rows in one place, an order.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from pyspark.sql import DataFrame

from laxity.contract import PromiseTerms
from laxity.spark.engine.context import BatchContext
from laxity.spark.engine.planned import Needs, Planned


class Stage(Protocol):
    """Anything that can stand between intake and sink; most need not say all of it.

    `makes_rows`: what it passes on is made by it, and not the rows that entered.
    """

    makes_rows: bool = False

    @property
    def name(self) -> str:
        """How the contract, the state, the tables and the reports call it."""

    @property
    def terms(self) -> str:
        """What it does, for the contract."""

    @property
    def promises(self) -> Sequence[PromiseTerms]:
        """What it promises, if it can be kept or broken."""
        return ()

    def needs(self, state: dict[str, Any]) -> Needs:
        """What it needs of its rows, given its state."""
        return Needs()

    def unfinished(self, state: dict[str, Any]) -> str:
        """What a drain would still bring out, in words; empty if nothing."""
        return ""

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        """Plan the work on the rows of one micro-batch."""
