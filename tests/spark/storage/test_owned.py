"""Two owners on one checkpoint: whoever wakes up too late harms nothing of the other's."""

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.spark.api.stream import Stream
from laxity.spark.storage import reports
from laxity.spark.storage.files import LocalFiles
from laxity.spark.storage.lock import Lock
from laxity.spark.storage.owned import OwnedFiles
from support import stages, traces
from support.owners import Second, Sleeper

pytestmark = pytest.mark.spark

STEPS = ["sink write", "clear state", "delete state"]
MORE_STEPS = [
    "sink open",
    "write reports",
    "sink forget",
    "write commits",
    "delete commits",
    "delete reports",
]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    return traces.write_trace(folder / "trace.parquet", traces.dirty_rows(1000))


def stream(spark: SparkSession, trace: Path, wait_us: int = stages.SECOND) -> Stream:
    source = traces.trace_source(spark, trace, 100)
    return traces.with_stage(lx.stream(source), stages.Hold(wait_us))


@pytest.mark.parametrize(
    "step", [*STEPS, *(pytest.param(step, marks=pytest.mark.long) for step in MORE_STEPS)]
)
def test_an_owner_that_slept_at_any_step_harms_nothing_of_the_next(
    spark: SparkSession, trace: Path, work: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(reports, "PER_FILE", 2)
    monkeypatch.setattr(reports, "KEEP_FILES", 2)
    first = stream(spark, trace, 10**12 if step == "sink forget" else stages.SECOND)
    second = Second(spark, stream(spark, trace), work)
    n_commits = 0 if step in ("sink open", "sink forget") else 3
    sleeper = Sleeper(step, work, second, n_commits)
    sleeper.patch(monkeypatch)
    with pytest.raises(lx.StateError, match="now belongs to process .* stops without committing"):
        traces.run(first, work)
    assert sleeper.slept
    gone = [name for name, held in second.left.items() if (work / name).read_bytes() != held]
    assert second.left
    assert not gone
    second.held.check()
    second.held.release()


def test_no_file_changes_without_a_look_at_the_lock_right_before(
    spark: SparkSession, trace: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look is good for one change of the same thread."""
    looked, unseen, n_changes = threading.local(), list[str](), [0]
    look = Lock.check

    def check(lock: Lock) -> None:
        look(lock)
        looked.now = True

    def guarded(op: str, plain: Any) -> Any:
        def change(files: LocalFiles, name: str, *content: bytes) -> None:
            n_changes[0] += 1
            within, seen = vars(looked).get("within"), vars(looked).pop("now", False)
            if not seen and not within and name not in ("lock.json", "_laxity"):
                unseen.append(f"{op} {name}")
            looked.within = True  # to clear is also to delete
            plain(files, name, *content)
            looked.within = within

        return change

    monkeypatch.setattr(Lock, "check", check)
    for op in ("write", "delete", "clear"):
        monkeypatch.setattr(LocalFiles, op, guarded(op, getattr(LocalFiles, op)))
    traces.run(stream(spark, trace), work)
    assert n_changes[0] > 50
    assert not unseen


def test_reading_needs_no_ownership(work: Path) -> None:
    def lost() -> None:
        raise lx.StateError("lost")

    LocalFiles(str(work)).write("x/y", b"1")
    files = OwnedFiles(LocalFiles(str(work)), lost)
    assert (files.read("x/y"), files.names("x"), files.uri) == (b"1", ["y"], work.as_uri())
    for change in (files.delete, files.clear, lambda name: files.write(name, b"2")):
        with pytest.raises(lx.StateError, match="lost"):
            change("x")
