"""Two owners of one checkpoint: the first falls asleep at a step, the second takes over."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.contract import Contract
from laxity.spark.api.stream import Stream
from laxity.spark.engine.batch import BatchRunner, Plan
from laxity.spark.engine.batch_stats import packed
from laxity.spark.engine.sink import OwnedSink
from laxity.spark.storage import lock
from laxity.spark.storage.checkpoint import Checkpoint, commit_ids
from laxity.spark.storage.files import LocalFiles
from laxity.spark.storage.lock import Lock
from laxity.spark.storage.owned import OwnedFiles
from support import traces

OPS = ((OwnedFiles, ("write", "delete", "clear")), (OwnedSink, ("open", "write", "forget")))
BESIDE = {"clear state": "sink", "sink write": "clear", "sink forget": "clear"}  # run at one time


def called(owned: Any, op: str, args: Any) -> str:
    """A step by name: what is done, and in which folder or to the sink."""
    if isinstance(owned, OwnedSink):
        return f"sink {op}"
    return f"{op} {str(args[0]).partition('/')[0]}"


@dataclass
class Sleeper:
    """Makes whoever comes to a step sleep there once, while `meanwhile` happens.

    Others of the same process sleep too: steps that may run beside it wait. It is for a checkpoint
    with `n_commits` or more.
    """

    step: str
    folder: Path
    meanwhile: Callable[[], None]
    n_commits: int = 0
    _began: threading.Event = field(default_factory=threading.Event)
    _woke: threading.Event = field(default_factory=threading.Event)
    _first: list[Lock] = field(default_factory=list)

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for kind, ops in OPS:
            for op in ops:
                monkeypatch.setattr(kind, op, self._sleepy(op, getattr(kind, op)))

    def _sleepy(self, op: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def step(owned: Any, *args: Any) -> Any:
            if self._is_first(owned):
                self._pass(called(owned, op, args))
            return plain(owned, *args)

        return step

    def _is_first(self, owned: Any) -> bool:
        """Whether it belongs to the first who held the checkpoint."""
        check: Any = owned.check if isinstance(owned, OwnedSink) else owned._check
        held = check.__self__
        self._first.append(held if isinstance(held, Lock) else held._lock)
        return self._first[-1] is self._first[0]

    def _pass(self, step: str) -> None:
        if len(commit_ids(LocalFiles(str(self.folder / "checkpoint")))) < self.n_commits:
            return
        if step == self.step and not self._began.is_set():
            self._began.set()
            self.meanwhile()
            self._woke.set()
        elif not self._woke.is_set() and (
            step == self.step or step.startswith(BESIDE.get(self.step, "none"))
        ):
            assert self._woke.wait(60)

    @property
    def slept(self) -> bool:
        return self._woke.is_set()


@dataclass
class Second:
    """Takes a checkpoint over and commits a batch of its own; holds it until released."""

    spark: SparkSession
    stream: Stream
    folder: Path
    name: str = "test"
    held: Any = None
    left: dict[str, bytes] = field(default_factory=dict)

    def __call__(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lock, "LEASE_US", 0)
            self.held = Checkpoint(self.spark, str(self.folder / "checkpoint"), self._contract())
        sink = OwnedSink(lx.parquet(str(self.folder / "out")), self.held.check)
        sink.open(self.spark, self.held.identity.id, self.held.last_id)
        runner = BatchRunner(Plan(self.name, self.stream.branch, sink, True, None), self.held)
        names = [source.name for source in self.stream.branch.sources]
        runner(packed(self._rows(), names), self.held.last_id + 1)
        self.left = files_in(self.folder)

    def _contract(self) -> Contract:
        return Contract.model_construct(
            pipeline=self.name,
            sources=tuple(source.terms for source in self.stream.branch.sources),
            stages=self.stream.stages,
        )

    def _rows(self) -> DataFrame:
        """Rows as they come from the stream's source, later than all others."""
        ids = self.spark.range(20)
        at = F.timestamp_micros(F.lit(traces.START_US + 3_600_000_000) + F.col("id") * 1000)
        known = {"_source": F.lit("bus"), "_event": at, "_arrival": at, "_seq": F.col("id")}
        given = [
            known.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
            for field in self.stream.rows.schema
        ]
        return ids.select(*given)


def files_in(folder: Path) -> dict[str, bytes]:
    """What a pipeline has written, but for the lock and Spark's own log."""
    found = [*(folder / "out").rglob("*"), *(folder / "checkpoint").rglob("*")]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in found
        if path.is_file() and path.name != lock.NAME and "spark" not in path.parts
    }
