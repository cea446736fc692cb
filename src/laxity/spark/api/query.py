"""A running query."""

import threading
from collections.abc import Callable
from contextlib import suppress

from pyspark.sql.streaming.query import StreamingQuery

from laxity.contract import Contract
from laxity.core.report import Report
from laxity.spark.engine.batch import BatchRunner
from laxity.spark.storage.checkpoint import Checkpoint
from laxity.spark.storage.reports import read_reports


class Query:
    """A handle on a started stream."""

    def __init__(
        self,
        contract: Contract,
        spark: StreamingQuery,
        runner: BatchRunner,
        held: Checkpoint,
        end: Callable[[], object],
    ) -> None:
        self.contract = contract
        self.spark = spark
        self._runner = runner
        self._checkpoint = held
        self._end = end
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="laxity-watch", daemon=True).start()

    def _watch(self) -> None:
        """Give everything back once the query has ended, however it ended."""
        with suppress(Exception):  # await_termination tells
            self.spark.awaitTermination()
        self._end()
        self._checkpoint.release()
        self._over.set()

    @property
    def is_active(self) -> bool:
        """Whether the query still runs."""
        return not self._over.is_set()

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until the query ends; whether it has. Raises what stopped it, if anything did."""
        if not self._over.wait(timeout_s):
            return False
        if self._runner.error:
            raise self._runner.error
        failure = self.spark.exception()
        if failure and not self._runner.stopping:
            raise failure
        return True

    def stop(self) -> None:
        """Let the batch under way finish, then end the query."""
        with self._runner.busy:
            self._runner.stopping = True
        self.spark.stop()
        self._over.wait()

    def report(self) -> Report | None:
        """The newest batch's report, None before the first."""
        reports = self.reports(last=1)
        return reports[-1] if reports else None

    def reports(self, last: int | None = None) -> list[Report]:
        """The reports so far, oldest first; only the newest `last` if given."""
        return read_reports(self._checkpoint.files, last)
