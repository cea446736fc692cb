"""Tables that stay at hand hold what their files hold, and no more memory than they need."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from laxity.core.ledger import Ledger
from laxity.spark.aside import Asides
from laxity.spark.checkpoint import Commit, Table
from laxity.spark.files import LocalFiles
from laxity.spark.gather import brought_together
from laxity.spark.keep import Loan, kept
from laxity.spark.leaf import Leaf, rows_of
from laxity.spark.standing import MANY, Piece, Standing
from laxity.spark.state import Tables, sweep


class Batches:
    """A table that each batch adds rows to, from files and at hand; they expire."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.files = spark, LocalFiles(str(folder))
        self.committed: dict[str, Table] = {}
        self.standing = Standing()
        self.n = 0

    def tables(self) -> Tables:
        return Tables(self.spark, self.files, self.committed, self.n, self.standing)

    def laid(self, rows: DataFrame) -> DataFrame:
        return brought_together(rows, ["key"])

    def add(self, rows: DataFrame, floor: int, anew: bool = False) -> None:
        tables, aside = self.tables(), Asides()
        newest = self.n + 4
        piece = Piece.of(self.laid(rows.selectExpr("id", "CAST(id AS STRING) AS key")), newest)
        tables.stay("t", [piece], aside, anew)
        if anew:
            tables.replace("t", piece.leaf.rows)
        else:
            tables.append("t", piece.leaf.rows, "id", newest)
            tables.expire("t", floor)
        self.commit(tables, aside)

    def commit(self, tables: Tables, aside: Asides) -> None:
        tables.write(aside)()
        aside.end()
        commit = Commit.model_construct(batch_id=self.n, ledger=Ledger(), tables=tables.next)
        sweep(self.files, [commit])
        self.committed, self.n = commit.tables, self.n + 1
        self.standing = self.standing.replaced(tables.left)

    def ids(self) -> list[int]:
        """What is at hand, which must be what the files hold."""
        aside = Asides()
        seen = self.tables().at_hand("t", self.laid, aside)
        read = self.tables().read("t")
        if seen is None or read is None:
            assert seen is read
            return []
        ids = [sorted(row["id"] for row in rows.collect()) for rows in (seen, read)]
        aside.end()
        assert ids[0] == ids[1]
        assert "Exchange" not in seen.groupBy("key").count()._jdf.queryExecution().toString()
        return ids[0]

    def kept(self) -> set[int]:
        """What the session keeps at hand."""
        return set(self.spark.sparkContext._jsc.getPersistentRDDs())


@pytest.fixture
def batches(spark: SparkSession, work: Path) -> Batches:
    return Batches(spark, work)


@pytest.mark.spark
def test_a_table_at_hand_is_what_its_files_hold(batches: Batches, spark: SparkSession) -> None:
    """Through folding, expiry, a restart, and a batch that does not read what it adds to."""
    before = batches.kept()
    assert batches.ids() == []
    for n in range(MANY + 4):
        batches.add(spark.range(n, n + 5), floor=n - 4)
        added = [id_ for low in range(n + 1) for id_ in range(low, low + 5)]
        assert batches.ids() == sorted(id_ for id_ in added if id_ >= n - 4)
    assert len(batches.kept() - before) <= MANY + 1
    batches.standing = Standing()
    batches.add(spark.range(46, 51), floor=0)
    assert not batches.standing.pieces
    assert batches.ids()[-1] == 50
    assert [len(pieces) for pieces in batches.standing.pieces.values()] == [1]
    batches.add(spark.range(56, 61), floor=0)
    assert batches.ids()[-6:] == [50, 56, 57, 58, 59, 60]


@pytest.mark.spark
def test_rows_that_replace_a_table_replace_what_is_at_hand(
    batches: Batches, spark: SparkSession
) -> None:
    before = batches.kept()
    for n in range(4):
        batches.add(spark.range(n, n + 2), floor=0, anew=True)
        assert batches.ids() == [n, n + 1]
    assert len(batches.kept() - before) == 1


@pytest.mark.spark
def test_another_branch_has_tables_of_its_own_at_hand(
    batches: Batches, spark: SparkSession
) -> None:
    batches.add(spark.range(1), floor=0)
    other = batches.tables().called(lambda name: f"x-{name}")
    assert other.at_hand("t", batches.laid, Asides()) is None


def test_rows_on_loan_are_let_go_of_once() -> None:
    gone: list[int] = []
    Loan(lambda: gone.append(1)).end()
    assert gone == [1]
    loan = Loan(lambda: gone.append(2))
    let_go = loan.extended()
    loan.end()
    assert gone == [1]
    let_go()
    assert gone == [1, 2]


@pytest.mark.spark
def test_rows_made_anew_are_the_same_in_the_same_places(spark: SparkSession) -> None:
    rows, let_go = kept(brought_together(spark.range(9), ["id"]))
    long = rows.selectExpr("id", "id + 1 AS n").where("n > 3").selectExpr("id", "n * 2 AS n")
    short = Leaf.made(long.where("n < 16")).rows
    assert sorted(short.collect()) == [(3, 8), (4, 10), (5, 12), (6, 14)]
    assert str(short._jdf.queryExecution().analyzed()).count("Project") == 0
    assert "Exchange" not in short.groupBy("id").count()._jdf.queryExecution().toString()
    let_go()


@pytest.mark.spark
def test_leaves_are_one_though_only_some_have_nulls(spark: SparkSession) -> None:
    sure = spark.range(3).selectExpr("id AS key", "array(id) AS some", "struct(id) AS one")
    sure = sure.where("key IS NOT NULL")
    maybe = "IF(id > 0, id, NULL)"
    unsure = spark.range(3).selectExpr(
        f"{maybe} AS key", f"array({maybe}) AS some", f"named_struct('id', {maybe}) AS one"
    )
    copies = [kept(brought_together(rows, ["key"])) for rows in (sure, unsure)]
    leaves = [Leaf.copied(rows) for rows, _ in copies]
    assert not leaves[0].schema["key"].nullable
    for both in (leaves, leaves[::-1]):
        rows = rows_of(both)
        assert str(rows._jdf.queryExecution().analyzed()).count("LogicalRDD") == 1
        assert rows.where("key IS NULL AND some[0] IS NULL AND one.id IS NULL").count() == 1
        assert sorted(row[0] for row in rows.where("some[0] = one.id").collect()) == [0, 1, 1, 2, 2]
        grouped = rows.groupBy("key").count()
        assert "Exchange" not in grouped._jdf.queryExecution().toString()
        assert grouped.count() == 4
    for _, let_go in copies:
        let_go()


@pytest.mark.spark
def test_leaves_that_lie_otherwise_keep_all_rows(spark: SparkSession) -> None:
    rows = spark.range(5).selectExpr("id AS key", "id + 1 AS other")
    copies = [kept(brought_together(rows, [name])) for name in ("key", "other")]
    both = rows_of([Leaf.copied(one) for one, _ in copies])
    assert both.groupBy("key").count().where("count = 2").count() == 5
    for _, let_go in copies:
        let_go()
