"""Small files, written whole or not at all.

A checkpoint or a sink's folder may be local, on HDFS or in an object store. Local ones are handled
by Python itself (so that watching a local checkpoint needs no Java), all others by Hadoop's file
system. `write` is atomic: a reader sees the old content or the new, also after a crash. Nothing is
promised about a power failure that the file system itself does not promise.
"""

import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlparse

from laxity.errors import EngineError
from laxity.spark.jvm.hadoop_files import HadoopFiles, default_is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORK = "_temporary/0/_temporary"  # where Hadoop's committer collects the files of a job


class Files(Protocol):
    """A folder: names are relative to it, with `/` between the parts."""

    uri: str

    def read(self, name: str) -> bytes | None:
        """The content, or None if there is no such file."""

    def write(self, name: str, content: bytes) -> None:
        """Make the file hold this content, atomically."""

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""

    def delete(self, name: str) -> None:
        """Remove a file or a whole folder; nothing happens if there is none."""

    def clear(self, folder: str) -> None:
        """Make sure that nothing is left in a folder, which Spark is about to write into."""


def is_local(path: str) -> bool:
    """Whether a path names the local file system without doubt."""
    return urlparse(path).scheme in ("", "file")


def open_files(path: str, spark: "SparkSession | None" = None) -> Files:
    """The folder at a path; `spark` is needed for any that is not local."""
    if is_local(path) and not (spark and default_is_remote(spark) and not urlparse(path).scheme):
        return LocalFiles(path)
    if spark is None:
        raise EngineError(f"{path} is not a local folder: reading it needs a Spark session")
    return HadoopFiles(spark, path)


class LocalFiles:
    """A local folder, without the help of Java."""

    def __init__(self, path: str) -> None:
        parsed = urlparse(path)
        self._root = Path(unquote(parsed.path) if parsed.scheme else path).absolute()
        self.uri = self._root.as_uri()

    def read(self, name: str) -> bytes | None:
        """The content, or None if there is no such file."""
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Make the file hold this content, atomically."""
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.draft")
        try:
            draft.write_bytes(content)
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        try:
            found = [path.name for path in (self._root / folder).iterdir()]
        except FileNotFoundError:
            return []
        return sorted(name for name in found if name[0] != ".")

    def delete(self, name: str) -> None:
        """Remove a file or a whole folder; nothing happens if there is none."""
        path = self._root / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def clear(self, folder: str) -> None:
        """Make the folder anew, and those that Spark would make in it.

        Hadoop starts a process of its own for the rights of each folder it makes.
        """
        self.delete(folder)
        (self._root / folder).mkdir(parents=True)
        (self._root / folder / _WORK).mkdir(parents=True)
