"""Keep a batch's rows at hand, so that several jobs read them once from their source.

With executors inside the driver, rows are kept as they are: half the price of a columnar cache.
Such rows cannot be made again from their source, so where an executor can be lost without the
driver they are cached, which can. So are rows that a stage made: counts may ride on them, and those
of a copy would be lost.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from laxity.spark.jvm.stored_rows import StoredRows
from laxity.spark.rows.one_process import in_one_process


@dataclass(frozen=True, eq=False)
class Materialized:
    """Rows as the first job that reads them leaves them.

    `compute` is such a job, and no more: nothing is planned for it.
    """

    rows: DataFrame
    compute: Callable[[], object]
    release: Callable[[], object]


def materialized(rows: DataFrame, made: bool = False) -> Materialized:
    """Keep rows at hand; `made`: by a stage, and not read from a source or a table."""
    if made or not in_one_process(rows.sparkSession):
        cached = rows.persist()
        return Materialized(cached, cached.count, cached.unpersist)
    level = StorageLevel.MEMORY_AND_DISK_DESER
    copied = rows.localCheckpoint(eager=False, storageLevel=level)
    stored = StoredRows(copied)

    def release(_made_of: DataFrame = rows) -> None:  # tasks count for its plan as long as they run
        stored.release()

    return Materialized(copied, stored.compute, release)


class Loan:
    """Rows at hand that are let go of when the batch is over, unless somebody keeps them longer."""

    def __init__(self, release: Callable[[], object]) -> None:
        self._release = release
        self._extended = False

    def extended(self) -> Callable[[], object]:
        """Keep them; how to let go of them."""
        self._extended = True
        return self._release

    def end(self) -> None:
        """The batch is over."""
        if not self._extended:
            self._release()
