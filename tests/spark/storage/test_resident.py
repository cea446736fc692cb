"""Tables that stay at hand hold what their files hold, and no more memory than they need."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.rows.materialize import Loan
from laxity.spark.rows.partitioning import co_partitioned
from laxity.spark.storage.resident import MANY, Chunk, ResidentTables
from support.stores import Store


class Batches(Store):
    """A table that each batch adds rows to, from files and at hand; they expire."""

    def laid(self, rows: DataFrame) -> DataFrame:
        return co_partitioned(rows, ["key"])

    def add(self, rows: DataFrame, floor: int, anew: bool = False) -> None:
        tables, background = self.turn(), BackgroundJobs()
        newest = len(self.commits) + 4
        chunk = Chunk.of(self.laid(rows.selectExpr("id", "CAST(id AS STRING) AS key")), newest)
        tables.stay("t", [chunk], background, anew)
        if anew:
            tables.replace("t", chunk.leaf.rows)
        else:
            tables.append("t", chunk.leaf.rows, expire_by="id", newest=newest)
            tables.expire("t", floor)
        self.commit(tables, background)

    def ids(self) -> list[int]:
        """What is at hand, which must be what the files hold."""
        background = BackgroundJobs()
        seen = self.turn().at_hand("t", self.laid, background)
        read = self.turn().read("t")
        if seen is None or read is None:
            assert seen is read
            return []
        ids = [sorted(row["id"] for row in rows.collect()) for rows in (seen, read)]
        background.end()
        assert ids[0] == ids[1]
        assert "Exchange" not in seen.groupBy("key").count()._jdf.queryExecution().toString()
        return ids[0]

    def materialized(self) -> set[int]:
        """What the session keeps at hand."""
        return set(self.spark.sparkContext._jsc.getPersistentRDDs())


@pytest.fixture
def batches(spark: SparkSession, work: Path) -> Batches:
    return Batches(spark, work)


@pytest.mark.spark
def test_a_table_at_hand_is_what_its_files_hold(batches: Batches, spark: SparkSession) -> None:
    """Through folding, expiry, a restart, and a batch that does not read what it adds to."""
    before = batches.materialized()
    assert batches.ids() == []
    for n in range(MANY + 4):
        batches.add(spark.range(n, n + 5), floor=n - 4)
        added = [id_ for low in range(n + 1) for id_ in range(low, low + 5)]
        assert batches.ids() == sorted(id_ for id_ in added if id_ >= n - 4)
    assert len(batches.materialized() - before) <= MANY + 1
    batches.standing = ResidentTables()
    batches.add(spark.range(46, 51), floor=0)
    assert not batches.standing.chunks
    assert batches.ids()[-1] == 50
    assert [len(chunks) for chunks in batches.standing.chunks.values()] == [1]
    batches.add(spark.range(56, 61), floor=0)
    assert batches.ids()[-6:] == [50, 56, 57, 58, 59, 60]


@pytest.mark.spark
def test_rows_that_replace_a_table_replace_what_is_at_hand(
    batches: Batches, spark: SparkSession
) -> None:
    before = batches.materialized()
    for n in range(4):
        batches.add(spark.range(n, n + 2), floor=0, anew=True)
        assert batches.ids() == [n, n + 1]
    assert len(batches.materialized() - before) == 1


@pytest.mark.spark
def test_a_table_beside_another_is_at_hand_with_it(batches: Batches, spark: SparkSession) -> None:
    """Its rows stay with the other's, and after a restart both are read."""
    for restart in (False, True):
        tables, background = batches.turn(), BackgroundJobs()
        for name, ids in (("t", spark.range(5)), ("late", spark.range(7, 9))):
            rows = batches.laid(ids.selectExpr("id", "CAST(id AS STRING) AS key"))
            chunk = Chunk.of(rows, newest=9)
            tables.stay("t", [chunk], background)
            tables.append(name, chunk.leaf.rows, expire_by="id", newest=9)
        batches.commit(tables, background)
        if restart:
            batches.standing = ResidentTables()
        background = BackgroundJobs()
        seen = batches.turn().at_hand("t", batches.laid, background, beside="late")
        assert seen is not None
        ids_seen = sorted(row["id"] for row in seen.collect())
        assert ids_seen == sorted([0, 1, 2, 3, 4, 7, 8] * (2 if restart else 1))
        assert batches.standing.chunks["late"] == ()
        background.end()


@pytest.mark.spark
def test_another_branch_has_tables_of_its_own_at_hand(
    batches: Batches, spark: SparkSession
) -> None:
    batches.add(spark.range(1), floor=0)
    other = batches.turn().of("x")
    assert other.at_hand("t", batches.laid, BackgroundJobs()) is None


def test_rows_on_loan_are_let_go_of_once() -> None:
    gone: list[int] = []
    Loan(lambda: gone.append(1)).end()
    assert gone == [1]
    loan = Loan(lambda: gone.append(2))
    release = loan.extended()
    loan.end()
    assert gone == [1]
    release()
    assert gone == [1, 2]
