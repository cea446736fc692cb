"""What Hadoop's file systems promise."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laxity.spark.jvm.hadoop_files import HadoopFiles, default_is_remote, omit_checksums

pytestmark = pytest.mark.spark


def test_a_file_renamed_onto_another_replaces_it_and_no_draft_stays(
    spark: SparkSession, work: Path
) -> None:
    files = HadoopFiles(spark, work.as_uri())
    for content in (b"old", b"new \x00\xff"):
        files.write("a/x", content)
    assert files.read("a/x") == (work / "a" / "x").read_bytes() == b"new \x00\xff"
    assert [path.name for path in (work / "a").iterdir() if not path.name.endswith(".crc")] == ["x"]


def test_an_object_store_takes_a_file_in_one_go(
    spark: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laxity.spark.jvm.hadoop_files.OBJECT_STORES", {"file"})
    files = HadoopFiles(spark, work.as_uri())
    monkeypatch.setattr(files, "_context", None)  # whoever renames
    files.write("x", b"1")
    files.write("x", b"2")
    assert files.read("x") == b"2"


def test_a_folder_that_cannot_be_deleted_is_not_cleared(
    spark: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn:
        def exists(self, _: object) -> bool:
            return True

        def delete(self, *_: object) -> bool:
            return False

    files = HadoopFiles(spark, work.as_uri())
    monkeypatch.setattr(files, "_fs", Stubborn())
    with pytest.raises(OSError, match=r"file:.*/a cannot be cleared"):
        files.clear("a")


def test_hadoop_tells_whether_paths_without_a_scheme_are_local(spark: SparkSession) -> None:
    conf = spark._jsc.hadoopConfiguration()
    before = conf.get("fs.defaultFS")
    assert not default_is_remote(spark)
    conf.set("fs.defaultFS", "hdfs://there:8020")
    try:
        assert default_is_remote(spark)
    finally:
        conf.set("fs.defaultFS", before)


def test_checksums_are_written_until_they_are_omitted(spark: SparkSession, work: Path) -> None:
    files = HadoopFiles(spark, work.as_uri())
    jvm, conf = spark._jvm, spark._jsc.hadoopConfiguration()
    assert jvm is not None
    jvm.org.apache.hadoop.fs.Path("file:///").getFileSystem(conf).setWriteChecksum(True)
    spark.range(1).write.parquet(f"{work}/with")
    omit_checksums(spark)
    spark.range(1).write.parquet(f"{work}/without")
    assert any(path.suffix == ".crc" for path in (work / "with").iterdir())
    assert not any(path.suffix == ".crc" for path in (work / "without").iterdir())
    assert files.names() == ["with", "without"]
