"""Hadoop's file systems, for folders that Python cannot reach, and what they do to local ones."""

import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OBJECT_STORES = {"s3", "s3a", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cosn", "obs"}


def default_is_remote(spark: "SparkSession") -> bool:
    """Whether a path without a scheme leads elsewhere than to local files."""
    default = str(spark._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///"))
    return not default.startswith("file:")


def omit_checksums(spark: "SparkSession") -> None:
    """Write local files without a second one for the checksum of each.

    Hadoop starts a process for the rights of every file it makes. What was written with a checksum
    is still read with it.
    """
    jvm: Any = spark._jvm
    root = jvm.org.apache.hadoop.fs.Path("file:///")
    root.getFileSystem(spark._jsc.hadoopConfiguration()).setWriteChecksum(False)


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
