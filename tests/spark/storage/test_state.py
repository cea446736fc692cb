from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from laxity.errors import StateError
from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.storage.commit import Segment, Table
from laxity.spark.storage.segments import FAN, fold
from support.stores import Store


@given(st.integers(0, 600))
def test_many_appends_leave_few_segments_and_forget_none(n_appends: int) -> None:
    segments: tuple[Segment, ...] = ()
    alive: dict[int, set[int]] = {}
    for batch in range(n_appends):
        kept, folded, level = fold(segments)
        alive[batch] = {batch}.union(*(alive.pop(s.batch_id) for s in folded))
        segments = (*kept, Segment(batch_id=batch, at=f"state/t/{batch}", level=level))
    assert {s.batch_id for s in segments} == set(alive)
    assert set().union(*alive.values()) == set(range(n_appends))
    depth = 1
    while FAN**depth <= n_appends:
        depth += 1
    assert len(segments) <= (FAN - 1) * depth


class Numbers(Store):
    """A table of numbers."""

    def rows(self, low: int, high: int) -> DataFrame:
        return self.spark.range(low, high, 1, 1).withColumn("name", F.concat(F.lit("n"), "id"))

    def ids(self) -> list[int]:
        table = self.turn().read("t")
        assert table is not None
        return sorted(row["id"] for row in table.collect())

    def n_files(self) -> int:
        return sum(path.is_file() for path in self.folder.rglob("*.parquet"))


@pytest.fixture
def store(spark: SparkSession, work: Path) -> Numbers:
    return Numbers(spark, work)


@pytest.mark.spark
def test_a_replaced_table_holds_the_last_rows_only(store: Numbers) -> None:
    assert store.turn().read("t") is None
    for batch in range(5):
        turn = store.turn()
        turn.replace("t", store.rows(batch, batch + 3))
        store.commit(turn)
    assert store.ids() == [4, 5, 6]
    assert store.n_files() == 2


@pytest.mark.spark
def test_an_appended_table_holds_all_rows_in_few_files(store: Numbers) -> None:
    for batch in range(21):
        turn = store.turn()
        turn.append("t", store.rows(batch, batch + 1))
        store.commit(turn)
    assert store.ids() == list(range(21))
    assert store.n_files() <= 2 * (FAN - 1) * 3


@pytest.mark.spark
def test_expired_rows_are_not_read_and_their_files_go(store: Numbers) -> None:
    for batch in range(8):
        turn = store.turn()
        turn.append(
            "t", store.rows(batch * 10, batch * 10 + 20), expire_by="id", newest=batch * 10 + 19
        )
        turn.expire("t", batch * 10)
        store.commit(turn)
        assert min(store.ids()) == batch * 10
    assert store.ids() == sorted([*range(70, 90), *range(70, 80)])
    alive = {path.parent.name for path in store.folder.rglob("*.parquet")}
    assert alive == {"5", "6", "7"}
    turn = store.turn()
    turn.expire("t", 30)
    assert turn.next["t"].floor == 70


@pytest.mark.spark
def test_tables_that_share_a_folder_are_written_by_one_job_and_keep_apart(store: Numbers) -> None:
    for batch in range(9):
        turn = store.turn()
        turn.append("t", store.rows(batch, batch + 1), within="both")
        if batch % 2:  # a column of the same name is another thing here
            turn.replace("last", store.rows(batch, batch + 2).selectExpr("name AS id"), "both")
        background = BackgroundJobs()
        turn.begin("both", background, n_rows=3)
        store.commit(turn, background)
        assert len(list(store.folder.glob(f"state/both/{batch}/*.parquet"))) <= 2
    assert store.ids() == list(range(9))
    last = store.turn().read("last")
    assert last is not None
    assert sorted(row["id"] for row in last.collect()) == ["n7", "n8"]
    assert {path.name for path in (store.folder / "state").iterdir()} == {"both"}
    kept = {path.name for path in (store.folder / "state/both").iterdir()}
    assert kept == {"3", "7", "8"}  # the first two hold what others were folded into


@pytest.mark.spark
def test_a_table_comes_in_time_for_the_folder_it_shares(store: Numbers) -> None:
    turn, background = store.turn(), BackgroundJobs()
    turn.begin("both", background)  # nothing to write yet
    turn.append("t", store.rows(0, 1), within="both")
    turn.begin_own(background)  # this is not its own
    turn.replace("last", store.rows(0, 1), within="both")
    turn.begin("both", background)
    with pytest.raises(StateError, match="table late is too late for folder both"):
        turn.append("late", store.rows(1, 2), within="both")
    store.commit(turn, background)
    assert store.ids() == [0]


@pytest.mark.spark
def test_uncommitted_writes_do_not_count_and_are_overwritten(store: Numbers) -> None:
    turn = store.turn()
    turn.append("t", store.rows(0, 5))
    store.commit(turn)
    lost = store.turn()
    lost.append("t", store.rows(5, 9))
    lost.write(BackgroundJobs())
    assert store.ids() == [0, 1, 2, 3, 4]
    again = store.turn()
    again.append("t", store.rows(7, 8))
    store.commit(again)
    assert store.ids() == [0, 1, 2, 3, 4, 7]


@pytest.mark.spark
def test_an_empty_segment_reads_as_no_rows(store: Numbers) -> None:
    turn = store.turn()
    turn.append("t", store.rows(0, 0), expire_by="id", newest=0)
    store.commit(turn)
    assert store.ids() == []


@pytest.mark.spark
def test_other_columns_and_a_second_write_are_refused(store: Numbers) -> None:
    turn = store.turn()
    turn.append("t", store.rows(0, 1))
    with pytest.raises(StateError, match="written twice in batch 0"):
        turn.replace("t", store.rows(0, 1))
    store.commit(turn)
    with pytest.raises(StateError, match="has columns id, name, rows to append have id"):
        store.turn().append("t", store.rows(0, 1).drop("name"))


@pytest.mark.spark
def test_a_failed_write_fails_the_batch(store: Numbers) -> None:
    turn = store.turn()
    turn.append("t", store.rows(0, 1).withColumn("name", F.raise_error(F.lit("bad luck"))))
    with pytest.raises(Exception, match="bad luck"):
        turn.write(BackgroundJobs())


def test_a_table_reads_back_from_its_json() -> None:
    table = Table(
        columns={"type": "struct", "fields": []}, segments=(Segment(batch_id=3, at="state/t/3"),)
    )
    assert Table.model_validate_json(table.model_dump_json()) == table


def test_a_write_that_has_begun_is_not_begun_again(spark: SparkSession, tmp_path: Path) -> None:
    store, background = Numbers(spark, tmp_path), BackgroundJobs()
    tables, written = store.turn(), list[int]()

    def made() -> DataFrame:
        written.append(1)
        return store.rows(0, 3)

    tables.append("t", store.rows(0, 0), made=made)
    tables.begin("t", background)
    tables.write(background)
    tables.write(background)
    assert written == [1]
    store.commit(tables)
    assert store.ids() == [0, 1, 2]
