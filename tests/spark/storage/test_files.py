from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from laxity.errors import EngineError
from laxity.spark.jvm.hadoop_files import HadoopFiles
from laxity.spark.storage.files import Files, LocalFiles, is_local, open_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_files(files: Files) -> None:
    """What holds for any folder."""
    assert files.read("a/b") is None
    assert files.names() == files.names("nowhere") == []
    files.write("a/b", b"one")
    files.write("a/b", b"two \x00\xff")
    files.write("a/c", b"")
    assert files.read("a/b") == b"two \x00\xff"
    assert files.read("a/c") == b""
    assert files.names() == ["a"]
    assert files.names("a") == ["b", "c"]
    files.delete("a/b")
    files.delete("a/b")
    assert files.names("a") == ["c"]
    files.clear("a")
    files.clear("new/one")
    assert files.read("a/c") is None
    files.delete("a")
    files.delete("new")
    assert files.names() == []


def test_a_local_folder_needs_no_java(work: Path) -> None:
    check_files(LocalFiles(str(work)))
    check_files(LocalFiles((work / "with space").as_uri()))


@pytest.mark.spark
def test_hadoop_files_do_the_same(spark: "SparkSession", work: Path) -> None:
    check_files(HadoopFiles(spark, work.as_uri()))


@pytest.mark.spark
def test_both_see_the_same_file(spark: "SparkSession", work: Path) -> None:
    HadoopFiles(spark, work.as_uri()).write("x", b"1")
    assert LocalFiles(str(work)).read("x") == b"1"
    assert isinstance(open_files(str(work), spark), LocalFiles)


def test_a_folder_that_cannot_be_cleared_is_not_written_into(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LocalFiles(str(work))
    files.write("a/b", b"old")
    monkeypatch.setattr("shutil.rmtree", lambda path, ignore_errors: None)
    with pytest.raises(FileExistsError):
        files.clear("a")


def test_a_failed_write_leaves_the_old_content_and_no_draft(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LocalFiles(str(work))
    files.write("x", b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.write("x", b"new")
    assert files.read("x") == b"old"
    assert [path.name for path in work.iterdir()] == ["x"]


def test_a_remote_folder_needs_spark() -> None:
    assert not is_local("hdfs://host/x")
    with pytest.raises(EngineError, match="needs a Spark session"):
        open_files("hdfs://host/x")
