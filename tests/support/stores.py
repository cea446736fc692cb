"""State tables without a query: every step is a committed batch."""

from pathlib import Path

from pyspark.sql import SparkSession

from laxity.core.ledger import Ledger
from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.storage.commit import Commit
from laxity.spark.storage.files import LocalFiles
from laxity.spark.storage.resident import ResidentTables
from laxity.spark.storage.segments import sweep
from laxity.spark.storage.state import Tables


class Store:
    """The tables of a folder, and what stays at hand of them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.files = spark, folder, LocalFiles(str(folder))
        self.commits: list[Commit] = []
        self.standing = ResidentTables()

    def turn(self) -> Tables:
        committed = self.commits[-1].tables if self.commits else {}
        return Tables(self.spark, self.files, committed, len(self.commits), self.standing)

    def commit(self, tables: Tables, background: BackgroundJobs | None = None) -> None:
        background = background or BackgroundJobs()
        tables.write(background)
        background.end()
        commit = Commit.model_construct(
            batch_id=len(self.commits), ledger=Ledger(), tables=tables.next
        )
        self.commits.append(commit)
        sweep(self.files, self.commits[-2:])
        self.standing = self.standing.replaced(tables.left)
