"""Rows of state tables that stay at hand from batch to batch: they need not be read.

A table's rows are at hand in pieces, one for every batch that added some, until they are many.
That is for executors that live in the driver; elsewhere a lost one would take its rows with it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from laxity.spark.jvm.rdd_leaf import RddLeaf, rows_of
from laxity.spark.rows.materialize import Loan, materialized

MANY = 8  # pieces that become one


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows at hand, and how to let go of them; `newest`: when the last of them expires."""

    leaf: RddLeaf
    newest: int | None
    release: Callable[[], object]

    @staticmethod
    def of(rows: DataFrame, newest: int | None) -> "Chunk":
        """Rows that will be at hand once a job has read them."""
        at_hand = materialized(rows)
        return Chunk(RddLeaf.copied(at_hand.rows), newest, at_hand.release)

    @staticmethod
    def view(rows: DataFrame, newest: int | None, loan: Loan) -> "Chunk":
        """Some of the rows on loan."""
        return Chunk(RddLeaf.made(rows), newest, loan.extended())

    def compute(self) -> None:
        """Run a job that reads them all."""
        self.leaf.compute()


@dataclass(frozen=True)
class ResidentTables:
    """The pieces of the tables that are at hand, each whole."""

    pieces: dict[str, tuple[Chunk, ...]] = field(default_factory=dict)

    def replaced(self, after: "ResidentTables") -> "ResidentTables":
        """Those of the batch after; tables that it left nothing new for stay."""
        for name, pieces in after.pieces.items():
            for piece in self.pieces.get(name, ()):
                if piece not in pieces:
                    piece.release()
        return ResidentTables(self.pieces | after.pieces)


def rows_in(pieces: Iterable[Chunk]) -> DataFrame:
    """All rows of the pieces."""
    return rows_of([piece.leaf for piece in pieces])
