import re
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.spark.api import session as module
from laxity.spark.api.hadoop_defaults import empty_defaults
from laxity.spark.api.session import default_memory, settings_of


@pytest.mark.spark
def test_the_active_session_is_used_and_learns_to_read_traces(spark: SparkSession) -> None:
    assert lx.session().sparkContext is spark.sparkContext
    trace = spark.read.format("laxity.trace").option("generator", "laxity.sim.workload:bus")
    assert "bus_id" in trace.option("arg.seconds", 1).load().columns
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.spark
def test_jobs_are_named_by_pipeline_batch_and_phase(spark: SparkSession) -> None:
    from laxity.spark.engine.phases import Phases

    phases = Phases(spark, "traffic · batch 7")
    with phases.phase("intake"):
        named = spark.sparkContext.getLocalProperty("spark.job.description")
    assert named == "traffic · batch 7 · intake"
    assert phases.seconds["intake"] >= 0


def test_a_quarter_of_the_memory_is_taken() -> None:
    assert re.fullmatch(r"[1-8]g", default_memory())


def test_a_spark_that_does_not_start_points_to_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", fail)
    with pytest.raises(lx.EngineError, match="Spark did not start: no luck; `laxity doctor`"):
        module.session()


@pytest.mark.spark
def test_hadoop_knows_nothing_of_yarn_and_mapreduce(spark: SparkSession) -> None:
    """What our jar has in place of their defaults is empty."""
    with zipfile.ZipFile(settings_of()["spark.driver.extraClassPath"]) as jar:
        texts = {name: jar.read(name) for name in jar.namelist()}
    assert set(texts) == {"mapred-default.xml", "yarn-default.xml"}
    assert all(text.split(b"\n")[1] == b"<configuration/>" for text in texts.values())
    hadoop = spark._jsc.hadoopConfiguration()
    assert hadoop.get("yarn.resourcemanager.address") is None


def test_the_jar_of_empty_defaults_is_made_once() -> None:
    jar = empty_defaults()
    first = jar.stat()
    assert empty_defaults().stat() == first
    jar.unlink()
    assert empty_defaults().stat().st_size == first.st_size


@pytest.mark.spark
def test_local_files_are_alone(spark: SparkSession, work: Path) -> None:
    """None has a second one with its checksum."""
    spark.range(3).write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", False).parquet(
        f"{work}/rows"
    )
    assert {path.suffix for path in (work / "rows").iterdir()} == {".parquet"}
    assert spark.read.parquet(f"{work}/rows").count() == 3
