"""Small files, written whole or not at all.

A checkpoint or a sink's folder may be local, on HDFS or in an object store. Local ones are handled
by Python itself (so that watching a local checkpoint needs no Java), all others by Hadoop's file
system. `write` is atomic: a reader sees the old content or the new, also after a crash. Nothing is
promised about a power failure that the file system itself does not promise.
"""

import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlparse

from laxity.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORK = "_temporary/0/_temporary"  # where Hadoop's committer collects the files of a job
OBJECT_STORES = {"s3", "s3a", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cosn", "obs"}


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
    if is_local(path) and not (spark and _default_is_remote(spark) and not urlparse(path).scheme):
        return LocalFiles(path)
    if spark is None:
        raise EngineError(f"{path} is not a local folder: reading it needs a Spark session")
    return HadoopFiles(spark, path)


def _default_is_remote(spark: "SparkSession") -> bool:
    default = str(spark._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///"))
    return not default.startswith("file:")


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


class HadoopFiles:
    """A folder on any file system Hadoop knows, through Spark's Java."""

    def __init__(self, spark: "SparkSession", path: str) -> None:
        jvm: Any = spark._jvm
        conf = spark._jsc.hadoopConfiguration()
        self._path = jvm.org.apache.hadoop.fs.Path
        root = self._path(path)
        self._fs = root.getFileSystem(conf)
        self._root = self._fs.makeQualified(root)
        self.uri = self._root.toString()
        self._context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._root.toUri(), conf
        )
        rename = jvm.org.apache.hadoop.fs.Options.Rename
        gateway: Any = spark._sc._gateway
        self._overwrite = gateway.new_array(rename, 1)
        self._overwrite[0] = rename.OVERWRITE
        self._io = jvm.org.apache.hadoop.io.IOUtils

    def read(self, name: str) -> bytes | None:
        """The content, or None if there is no such file."""
        path = self._at(name)
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            return bytes(self._io.readFullyToByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Make the file hold this content, atomically: an object store's put already is."""
        path = self._at(name)
        if self._root.toUri().getScheme() in OBJECT_STORES:
            self._put(path, content)
            return
        draft = self._path(path.getParent(), f".{path.getName()}.{uuid.uuid4().hex}.draft")
        self._put(draft, content)
        self._context.rename(draft, path, self._overwrite)

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        path = self._at(folder) if folder else self._root
        if not self._fs.exists(path):
            return []
        found = [status.getPath().getName() for status in self._fs.listStatus(path)]
        return sorted(name for name in found if name[0] != ".")

    def delete(self, name: str) -> None:
        """Remove a file or a whole folder; nothing happens if there is none."""
        self._fs.delete(self._at(name), True)

    def clear(self, folder: str) -> None:
        """Delete the folder; Spark makes it anew."""
        path = self._at(folder)
        if self._fs.exists(path) and not self._fs.delete(path, True):
            raise OSError(f"{path.toString()} cannot be cleared")

    def _at(self, name: str) -> Any:
        return self._path(self._root, name)

    def _put(self, path: Any, content: bytes) -> None:
        stream = self._fs.create(path, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
