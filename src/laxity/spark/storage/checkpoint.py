"""Where a pipeline keeps what it must not forget.

    laxity.json        whose checkpoint this is
    lock.json          which process works on it
    commits/N.json     batch N is done: its tables, memories, ledger and report
    state/NAME/N/      rows that batch N wrote to state table NAME, or to all that share a folder
    reports/N.jsonl    reports of the batches from N on, one a line
    spark/             Spark's own checkpoint: which input belongs to which batch

A commit is one file, written atomically and last: before it nothing of the batch counts, after it
everything does.
"""

import json
import uuid
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from laxity.contract import Contract
from laxity.core.ledger import Ledger
from laxity.core.report import Report
from laxity.errors import StateError
from laxity.spark.storage.files import Files, open_files
from laxity.spark.storage.lock import Lock
from laxity.spark.storage.owned import OwnedFiles
from laxity.spark.storage.reports import ReportLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = 7
KEEP = 3  # commits that stay readable: the newest, and a few to look back at


class Segment(BaseModel):
    """The rows one batch wrote to a state table; `level` counts how often they were folded.

    `newest`: the last of them is expired once the table's floor has passed it.
    """

    model_config = ConfigDict(frozen=True)

    batch_id: int
    level: int = 0
    newest: int | None = None


class Table(BaseModel):
    """A state table as of one commit; rows whose `expire_by` is below its floor are no more.

    `within`: the folder that its segments share with those of other tables.
    """

    model_config = ConfigDict(frozen=True)

    columns: dict[str, Any]
    segments: tuple[Segment, ...] = ()
    expire_by: str | None = None
    floor: int | None = None
    within: str | None = None


class Commit(BaseModel):
    """Everything that became durable with one batch."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    batch_id: int
    ledger: Ledger
    tables: dict[str, Table]
    memories: dict[str, Any]
    report: Report


class Identity(BaseModel):
    """Whose checkpoint this is: what may not change between two starts."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    id: str
    pipeline: str
    sources: tuple[str, ...]
    stages: tuple[str, ...]


M = TypeVar("M", Identity, Commit)


class Checkpoint:
    """A checkpoint held by this process, from construction to `release()`."""

    def __init__(self, spark: "SparkSession", path: str, contract: Contract) -> None:
        files = open_files(path, spark)
        jvm: Any = spark._jvm
        self._lock = Lock(files, int(jvm.java.lang.ProcessHandle.current().pid()))
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
        mine = Identity(
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
            self.files.write("laxity.json", mine.model_dump_json().encode())
            return mine
        for what in ("pipeline", "sources", "stages"):
            theirs, ours = getattr(found, what), getattr(mine, what)
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
        parsed = model.model_validate_json(content)
    except ValidationError as error:
        raise StateError(
            f"{where} cannot be read ({error.error_count()} faults): it was written by an "
            "incompatible version of Laxity or damaged; use the version that wrote it"
        ) from error
    if parsed.format != FORMAT:
        raise StateError(
            f"{where} has format {parsed.format}, this Laxity reads {FORMAT}: use the version "
            "that wrote it, or start with an empty checkpoint"
        )
    return parsed
