from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.spark.rows.results import keyed
from support import traces

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    return traces.write_trace(folder / "trace.parquet", traces.clean_rows(300))


def stream(spark: SparkSession, trace: Path) -> Any:
    return lx.stream(traces.trace_source(spark, trace, 100))


@pytest.mark.since(4, 2)
def test_memory_keeps_the_rows_of_every_batch(spark: SparkSession, trace: Path, work: Path) -> None:
    sink = lx.memory()
    assert sink.rows() == []
    traces.run(stream(spark, trace), work, sink)
    assert sorted(row["id"] for row in sink.rows()) == list(range(300))
    sink.open(spark, "", last_id=0)
    assert len(sink.rows()) == 100


@pytest.mark.since(4, 2)
def test_console_prints(
    spark: SparkSession, trace: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traces.run(stream(spark, trace), work, lx.console(2))
    told = capsys.readouterr()
    assert told.out.count("only showing top 2 rows") == 3
    assert "at least once" in told.err


@pytest.mark.since(4, 2)
def test_foreach_gets_rows_and_batch_id_and_warns_unless_idempotent(
    spark: SparkSession, trace: Path, work: Path
) -> None:
    seen: dict[int, int] = {}

    def write(rows: DataFrame, batch_id: int) -> None:
        seen[batch_id] = rows.count()

    with pytest.warns(lx.ContractWarning, match=r"foreach\(write\) cannot be exactly once"):
        traces.run(stream(spark, trace), work / "one", lx.foreach(write))
    assert seen == {0: 100, 1: 100, 2: 100}
    traces.run(stream(spark, trace), work / "two", lx.foreach(write, idempotent=True))


def test_a_failing_function_stops_the_query_with_its_own_error(
    spark: SparkSession, trace: Path, work: Path
) -> None:
    def write(rows: DataFrame, batch_id: int) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        traces.run(stream(spark, trace), work, lx.foreach(write, idempotent=True))


def test_parquet_refuses_a_folder_that_is_not_its_own(
    spark: SparkSession, trace: Path, work: Path
) -> None:
    sink = lx.parquet(str(work / "out"))
    traces.run(stream(spark, trace), work / "one", sink)
    with pytest.raises(lx.ConfigError, match="results of another checkpoint"):
        traces.run(stream(spark, trace), work / "two", sink)
    (work / "mine").mkdir()
    (work / "mine" / "precious").write_text("")
    with pytest.raises(lx.ConfigError, match="no Laxity query wrote"):
        traces.run(stream(spark, trace), work / "three", lx.parquet(str(work / "mine")))
    assert spark.read.parquet(str(work / "out")).count() == 300


def test_parquet_forgets_what_was_not_committed(
    spark: SparkSession, trace: Path, work: Path
) -> None:
    sink = lx.parquet(str(work / "out"))
    query = traces.run(stream(spark, trace), work, sink)
    spark.range(5).write.parquet(str(work / "out" / "batch_id=999"))
    traces.run(stream(spark, trace), work, sink)
    assert spark.read.parquet(str(work / "out")).count() == query.report().ledger.released


def test_a_table_is_written_once_however_often_a_batch_is_tried(
    spark: SparkSession, trace: Path, work: Path
) -> None:
    sink = lx.table("results")
    traces.run(stream(spark, trace), work, sink)
    assert spark.table("results").count() == 300
    rows = spark.table("results").where("batch_id = 1").drop("batch_id")
    again = spark.createDataFrame(rows.collect(), rows.schema)
    sink.write(again, 1)
    sink.write(again, 1)
    assert spark.table("results").count() == 300
    sink.write(again, 7)
    sink.open(spark, "", last_id=6)
    assert spark.table("results").count() == 300
    spark.sql("DROP TABLE results")


def test_a_table_of_another_kind_is_refused(spark: SparkSession) -> None:
    spark.range(3).write.saveAsTable("plain")
    with pytest.raises(lx.ConfigError, match="plain has no column batch_id"):
        lx.table("plain").open(spark, "", -1)
    spark.sql("DROP TABLE plain")


def test_a_catalog_that_forgets_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(spark.conf), "get", lambda *_: "in-memory")
    with pytest.raises(lx.ConfigError, match="forgotten with this Spark session"):
        lx.table("results").open(spark, "", -1)


def test_latest_keeps_the_newest_revision_of_every_key(spark: SparkSession, work: Path) -> None:
    rows = [("a", 1, 0, 5), ("a", 1, 1, 6), ("a", 2, 0, 7), ("b", 1, 0, 8)]
    results = spark.createDataFrame(rows, "area string, hour int, _revision int, value int")
    want = [("a", 1, 6), ("a", 2, 7), ("b", 1, 8)]
    marked = keyed(results, ["area", "hour"])
    marked.write.parquet(str(work / "results"))
    for newest in (
        lx.latest(results, by=["area", "hour"]),
        lx.latest(spark.read.parquet(str(work / "results"))),
    ):
        found = newest.select("area", "hour", "value").collect()
        assert sorted(tuple(row) for row in found) == want
    with pytest.raises(lx.ConfigError, match="latest needs the columns that name a result"):
        lx.latest(results)
    with pytest.raises(lx.ConfigError, match="_revision"):
        lx.latest(results.withColumn("_revision", F.lit(1)).drop("_revision"), by="area")
