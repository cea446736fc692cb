"""Rows of state tables that stay at hand from batch to batch: they need not be read.

A table's rows are at hand in chunks, one for every batch that added some, until they are many.
That is for executors that live in the driver; elsewhere a lost one would take its rows with it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from laxity.spark.jvm.rdd_leaf import RddLeaf, rows_of
from laxity.spark.rows.materialize import Loan, materialized

MANY = 8  # chunks that become one


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

    chunks: dict[str, tuple[Chunk, ...]] = field(default_factory=dict)

    def replaced(self, after: "ResidentTables") -> "ResidentTables":
        """Those of the batch after; tables that it left nothing new for stay."""
        for name, chunks in after.chunks.items():
            for chunk in self.chunks.get(name, ()):
                if chunk not in chunks:
                    chunk.release()
        return ResidentTables(self.chunks | after.chunks)


def rows_of_chunks(chunks: Iterable[Chunk]) -> DataFrame:
    """All rows of the pieces."""
    return rows_of([chunk.leaf for chunk in chunks])
