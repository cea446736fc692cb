"""On a cluster, what was written is there to be seen, or the query stops."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import DataFrameWriter, SparkSession

import laxity as lx
from laxity.spark.jvm.hadoop_files import HadoopFiles
from laxity.spark.rows.one_process import in_one_process
from laxity.spark.storage import parquet_writer as written
from laxity.spark.storage.checkpoint import commit_ids
from laxity.spark.storage.files import LocalFiles
from support import stages, traces


@pytest.mark.parametrize(
    ("master", "one"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[2,3]", True),
        ("local-cluster[2,1,512]", False),
        ("spark://127.0.0.1:7077", False),
        ("yarn", False),
        ("k8s://https://local", False),
    ],
)
def test_any_master_but_local_is_a_cluster(master: str, one: bool) -> None:
    session = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    assert in_one_process(cast("SparkSession", session)) is one


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "in_one_process", lambda _: False)


def lose_a_part(monkeypatch: pytest.MonkeyPatch, of: str) -> None:
    """One part of what is written to such folders does not come to the driver's disk."""
    plain = DataFrameWriter.parquet

    def parquet(writer: DataFrameWriter, path: str, *args: Any) -> None:
        plain(writer, path, *args)
        if of in path:
            max(Path(path.removeprefix("file://")).glob("*.parquet")).unlink()

    monkeypatch.setattr(DataFrameWriter, "parquet", parquet)


def stream(spark: SparkSession, work: Path) -> Any:
    trace = traces.write_trace(work / "trace.parquet", traces.dirty_rows(300))
    return traces.with_stage(
        lx.stream(traces.trace_source(spark, trace, 100)), stages.Hold(stages.SECOND // 2)
    )


@pytest.mark.spark
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("of", ["/out/batch_id=1", "/state/hold-held/1", "/state/dead/1"])
def test_a_part_that_nobody_sees_stops_the_query_before_the_commit(
    spark: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    lose_a_part(monkeypatch, of)
    told = rf"\d+ rows were written to file:.*{of}, and \d+ are to be seen .* all machines share"
    with pytest.raises(lx.EngineError, match=told):
        traces.run(stream(spark, work), work)
    assert commit_ids(LocalFiles(str(work / "checkpoint"))) == [0]


@pytest.mark.spark
@pytest.mark.usefixtures("cluster")
def test_what_is_all_there_is_committed(spark: SparkSession, work: Path) -> None:
    query = traces.run(stream(spark, work), work)
    released = query.report().ledger.released
    assert spark.read.parquet(str(work / "out")).count() == released > 0


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.usefixtures("cluster")
def test_a_table_is_seen_too(
    spark: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces.run(stream(spark, work), work / "all", lx.table("seen"))
    lost = SimpleNamespace(arrive=lambda: {"n_written": 999})
    monkeypatch.setattr(written, "observe", lambda rows, _: (rows, lost))
    with pytest.raises(lx.EngineError, match="999 rows were written to table seen, and"):
        traces.run(stream(spark, work), work / "some", lx.table("seen"))


@pytest.mark.spark
@pytest.mark.parametrize("local", [True, False])
def test_rows_are_counted_by_footers_wherever_they_lie(
    spark: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch, local: bool
) -> None:
    rows = spark.range(1000).repartition(3)
    rows.write.parquet(str(work / "out" / "x"))
    monkeypatch.setattr(written, "is_local", lambda _: local)
    for files in (LocalFiles(str(work / "out")), HadoopFiles(spark, str(work / "out"))):
        assert written.visible_rows(rows, files, "x") == 1000
        assert written.visible_rows(rows, files, "none") == 0


@pytest.mark.spark
def test_in_one_process_nothing_is_looked_at(
    spark: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(*_: Any) -> int:
        raise AssertionError

    monkeypatch.setattr(written, "observe", looked)
    written.write_whole(spark.range(3), "", lambda rows: rows, looked)
