"""Where a pipeline keeps what it must not forget.

    laxity.json        whose checkpoint this is
    lock.json          which process works on it
    commits/N.json     batch N is done: its tables, memories, ledger and report
    state/NAME/N/      rows that batch N wrote to state table NAME, or to all that share a folder;
                       NAME begins with the name of the stage whose table it is
    reports/N.jsonl    reports of the batches from N on, one a line
    spark/             Spark's own checkpoint: which input belongs to which batch

A commit is one file, written atomically and last: before it nothing of the batch counts, after it
everything does.
"""

import json
import uuid
from typing import TYPE_CHECKING, TypeVar

from laxity.contract import Contract
from laxity.errors import StateError
from laxity.spark.jvm.java_process import java_pid
from laxity.spark.storage import format_7
from laxity.spark.storage.commit import FORMAT, Commit, Identity
from laxity.spark.storage.files import Files, open_files
from laxity.spark.storage.lock import Lock
from laxity.spark.storage.owned import OwnedFiles
from laxity.spark.storage.reports import ReportLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEEP = 3  # commits that stay readable: the newest, and a few to look back at


M = TypeVar("M", Identity, Commit)


class Checkpoint:
    """A checkpoint held by this process, from construction to `release()`."""

    def __init__(self, spark: "SparkSession", path: str, contract: Contract) -> None:
        files = open_files(path, spark)
        self._lock = Lock(files, java_pid(spark))
        self.files = OwnedFiles(files, self._lock.check)
        try:
            self.identity = self._claim(contract)
            self._kept = [_read_commit(self.files, n) for n in commit_ids(self.files)[-KEEP:]]
            self._compare_with_spark()
            self.reports = ReportLog(self.files)
            if self.last:
                self.reports.append(self.last.report)
        except BaseException:
            self._lock.release()
            raise

    @property
    def last(self) -> Commit | None:
        """The newest commit, or None before the first."""
        return self._kept[-1] if self._kept else None

    @property
    def last_id(self) -> int:
        """The newest committed batch, -1 before the first."""
        return self.last.batch_id if self.last else -1

    def began_us(self, batch_id: int) -> int | None:
        """When Spark began a batch, as its own log says: the same when the batch is run again."""
        planned = self.files.read(f"spark/offsets/{batch_id}")
        if planned is None:
            return None
        return int(json.loads(planned.splitlines()[1])["batchTimestampMs"]) * 1000

    def commit(self, commit: Commit) -> None:
        """Make a batch durable."""
        self.files.write(_commit_name(commit.batch_id), commit.model_dump_json().encode())
        self._kept.append(commit)

    def trim(self) -> bool:
        """Forget commits older than the last few; whether that left state nobody refers to."""
        forgotten = self._kept[:-KEEP]
        for commit in forgotten:
            self.files.delete(_commit_name(commit.batch_id))
        self._kept = self._kept[-KEEP:]
        return any(commit.tables != self._kept[0].tables for commit in forgotten)

    @property
    def kept(self) -> list[Commit]:
        """The commits that are still on record, oldest first."""
        return self._kept

    def check(self) -> None:
        """Raise unless the checkpoint is still held by this process."""
        self._lock.check()

    def release(self) -> None:
        """Give the checkpoint back for others to use."""
        self._lock.release()

    def _claim(self, contract: Contract) -> Identity:
        wanted = Identity(
            id=uuid.uuid4().hex,
            pipeline=contract.pipeline,
            sources=tuple(source.name for source in contract.sources),
            stages=tuple(stage.name for stage in contract.stages),
        )
        found = read_identity(self.files)
        if found is None:
            if self.files.names("spark") or self.files.names("commits"):
                raise StateError(
                    f"checkpoint {self.files.uri} has data but no laxity.json: it was not made by "
                    "Laxity, or was damaged; choose an empty folder"
                )
            self.files.write("laxity.json", wanted.model_dump_json().encode())
            return wanted
        for what in ("pipeline", "sources", "stages"):
            theirs, ours = getattr(found, what), getattr(wanted, what)
            if theirs != ours:
                raise StateError(
                    f"checkpoint {self.files.uri} belongs to another pipeline: its {what} is "
                    f"{theirs!r}, this one's is {ours!r}; choose another checkpoint folder"
                )
        return found

    def _compare_with_spark(self) -> None:
        """Both logs must tell of the same batches, or input would be skipped or repeated."""
        planned, done = (
            max((int(n) for n in self.files.names(f"spark/{log}") if n.isdigit()), default=-1)
            for log in ("offsets", "commits")
        )
        if not done <= self.last_id <= planned:
            raise StateError(
                f"checkpoint {self.files.uri} is damaged: Laxity committed batch {self.last_id}, "
                f"Spark planned {planned} and finished {done}; restore the whole folder from one "
                "backup, or start with an empty one"
            )


def read_identity(files: Files) -> Identity | None:
    """Whose checkpoint a folder is; None if it is none."""
    content = files.read("laxity.json")
    return None if content is None else _parse(Identity, content, f"{files.uri}/laxity.json")


def read_last_commit(files: Files) -> Commit | None:
    """The newest commit of a checkpoint, without holding it."""
    ids = commit_ids(files)
    return _read_commit(files, ids[-1]) if ids else None


def commit_ids(files: Files) -> list[int]:
    """The batches with a commit on record, oldest first."""
    return sorted(int(name.removesuffix(".json")) for name in files.names("commits"))


def _commit_name(batch_id: int) -> str:
    return f"commits/{batch_id}.json"


def _read_commit(files: Files, batch_id: int) -> Commit:
    name = _commit_name(batch_id)
    return _parse(Commit, files.read(name) or b"", f"{files.uri}/{name}")


def _parse(model: type[M], content: bytes, where: str) -> M:
    try:
        value = json.loads(content)
        found = value["format"]
        if found not in (FORMAT, format_7.FORMAT):
            raise StateError(
                f"{where} has format {found}, this Laxity reads {format_7.FORMAT} and {FORMAT}: "
                "use the version that wrote it, or start with an empty checkpoint"
            )
        if found == format_7.FORMAT:
            value = format_7.upgraded(value)
        return model.model_validate(value)
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"{where} cannot be read ({error}): it was written by an incompatible version of "
            "Laxity or damaged; use the version that wrote it"
        ) from error
