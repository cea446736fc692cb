"""A running query."""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql.streaming.query import StreamingQuery

from laxity.contract import Contract
from laxity.core.report import Report
from laxity.errors import EngineError
from laxity.spark.storage.checkpoint import Checkpoint
from laxity.spark.storage.reports import read_reports

TRIES = 60  # until a run of one batch finds that time has gone on


class Runner(Protocol):
    """What a query asks of the batch protocol; `busy` is held while a batch runs."""

    busy: Any
    stopping: bool
    error: Exception | None

    @property
    def drained(self) -> bool:
        """Whether the last batch let everything out."""

    def drain(self) -> None:
        """Let the next batch be the last."""

    def left(self) -> str:
        """What is still to come, in words."""


@dataclass(frozen=True)
class Running:
    """What a query is made of: its batches, what holds the checkpoint, and how it ends.

    `once` starts a run of one batch over all there is; `ends`: the trigger does not go on for ever.
    """

    runner: Runner
    checkpoint: Checkpoint
    once: Callable[[], StreamingQuery]
    ends: bool
    end: Callable[[], object]


class Query:
    """A handle on a started stream, made by `Stream.start`.

    `contract` is what was printed at start, `spark` Spark's own handle.
    """

    def __init__(
        self, contract: Contract, spark: StreamingQuery, running: Running, *, drain: bool = False
    ) -> None:
        self.contract = contract
        self.spark = spark
        self._running = running
        self._runner = running.runner
        self._drain = drain
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="laxity-watch", daemon=True).start()

    def _watch(self) -> None:
        """Give everything back once the query has ended, however it ended."""
        with suppress(Exception):  # await_termination tells
            self.spark.awaitTermination()
            if not self._runner.stopping and self._running.ends and not self.spark.exception():
                self._ended()
        self._running.end()
        self._running.checkpoint.release()
        self._over.set()

    def _ended(self) -> None:
        """All that was available has been worked through."""
        if self._drain:
            self._drain_once()
        elif left := self._runner.left():
            print(  # noqa: T201
                f"laxity: {self.contract.pipeline} ended with {left}; the next run goes on there. "
                "To let everything out at the end of a run, start it with drain=True",
                file=sys.stderr,
            )

    def _drain_once(self) -> None:
        """One more batch, the last: a crash before its end leaves it to the next run."""
        self._runner.drain()
        for _ in range(TRIES):  # Spark makes no batch before its heartbeat has beaten again
            self.spark = self._running.once()
            self.spark.awaitTermination()
            if self._runner.drained or self._runner.stopping:
                return
            time.sleep(0.1)
        self._runner.error = EngineError("Spark made no batch to drain; start the query again")

    @property
    def is_active(self) -> bool:
        """Whether the query still runs."""
        return not self._over.is_set()

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until the query ends.

        Parameters
        ----------
        timeout_s
            How long to wait; without it, as long as it takes.

        Returns
        -------
        bool
            Whether it has ended.

        Raises
        ------
        LaxityError
            What stopped it, if anything did; an error of Spark or of the user's code as it is.
        """
        if not self._over.wait(timeout_s):
            return False
        if self._runner.error:
            raise self._runner.error
        failure = self.spark.exception()
        if failure and not self._runner.stopping:
            raise failure
        return True

    def stop(self) -> None:
        """Let the batch under way finish, then end the query.

        Nothing is let out: rows stay held, and the next start goes on there.
        """
        with self._runner.busy:
            self._runner.stopping = True
        self.spark.stop()
        self._over.wait()

    def drain(self) -> None:
        """Let everything out, then end: no row is held, and every result is final.

        A run over what is available first works through that; a live one ends with its next batch.
        Rows that a later run brings and that lie behind are late.

        Raises
        ------
        LaxityError
            What stopped the query before, if anything did; starting it again goes on there.
        """
        self._drain = True
        if self._running.ends:
            self.await_termination()
            return
        self._runner.drain()
        while not self._runner.drained and not self._over.wait(0.01):
            pass
        self.stop()
        self.await_termination()

    def report(self) -> Report | None:
        """The newest batch's report.

        Returns
        -------
        Report or None
            None before the first batch.
        """
        reports = self.reports(last=1)
        return reports[-1] if reports else None

    def reports(self, last: int | None = None) -> list[Report]:
        """The reports so far, of this run and those before.

        Parameters
        ----------
        last
            Only so many of the newest.

        Returns
        -------
        list of Report
            Oldest first; the newest ten thousand or so are kept.
        """
        return read_reports(self._running.checkpoint.files, last)
