"""The micro-batch, exactly once: the path of every row.

Spark calls a `BatchRunner` with the rows of each micro-batch. The runner *observes* them, lets the
stages *decide* and *apply*, and makes output, state and ledger durable together:

    intake   count the rows, tell dead letters apart
    stages   each stage in turn, as DataFrames
    output   the sink writes under the batch's id; a second try replaces the first
    state    state tables and letters, in folders of their own
    commit   one small file, last and atomic: now the batch has happened
    report   the batch's report is published
    clean    what no kept commit refers to is deleted

A crash before the commit leaves nothing that counts: Spark hands over the same rows under the same
id again, and everything is overwritten. A crash after it leaves a batch that is known to be done.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from laxity.core.ledger import Ledger
from laxity.core.progress import Progress
from laxity.core.report import Latency, Promise, Report, stage_reports
from laxity.errors import StateError
from laxity.spark.engine.account import post_letters, settle
from laxity.spark.engine.batch_stats import arrival_columns, n_results, read_latency
from laxity.spark.engine.branch import Branch
from laxity.spark.engine.branch_runner import Batch, BranchResult, BranchRunner
from laxity.spark.engine.failures import explained
from laxity.spark.engine.phases import Phases
from laxity.spark.engine.sink import Sink
from laxity.spark.engine.stage import Outcome
from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.rows.measure import measure, observe
from laxity.spark.rows.wall import now_us
from laxity.spark.storage.checkpoint import Checkpoint, Commit
from laxity.spark.storage.resident import ResidentTables
from laxity.spark.storage.segments import sweep
from laxity.spark.storage.state import Tables

log = logging.getLogger("laxity")

PROGRESS = "progress"  # the memory that is the runner's own


@dataclass(frozen=True)
class Plan:
    """What is to be done with every batch.

    `dated`: results carry `_arrival`, so latency is measured on them and not on the input.
    """

    pipeline: str
    branch: Branch
    sink: Sink
    dated: bool
    deadline_us: int | None


class BatchRunner:
    """Runs the batch protocol for one pipeline; Spark calls it with the packed rows of each batch.

    `n_run` counts the batches of all pipelines in this process.
    """

    n_run: ClassVar[int] = 0

    def __init__(self, plan: Plan, checkpoint: Checkpoint) -> None:
        self._plan = plan
        self._checkpoint = checkpoint
        self.busy = threading.Lock()
        self.stopping = False
        self.error: Exception | None = None
        sources = plan.branch.sources
        self._progress = Progress(
            [source.name for source in sources],
            {source.name: source.terms.idle_after_us for source in sources},
            now_us(),
        )
        if checkpoint.last:
            self._progress.restore(checkpoint.last.memories[PROGRESS], now_us())
        self._standing = ResidentTables()
        self._rides = not plan.branch.stages and plan.sink.one_pass
        self._course = BranchRunner(plan.branch, self._progress, self._rides, plan.dated)
        self._result_columns = [n_results()]
        if plan.dated:
            self._result_columns += arrival_columns(constant=False)
        sweep(checkpoint.files, checkpoint.kept)

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Run one batch, unless it is already done."""
        last_id = self._checkpoint.last_id
        with self.busy:
            if self.stopping:  # Spark must not be interrupted inside a batch, so none is begun
                raise StateError(f"the query is being stopped; batch {batch_id} is for later")
            try:
                if batch_id > last_id + 1:
                    raise StateError(f"Spark is at batch {batch_id}, the last commit is {last_id}")
                if batch_id == last_id + 1:
                    self._run(rows, batch_id)
            except Exception as error:
                self.error = explained(error, self._checkpoint.files.uri, batch_id)
                raise

    def _run(self, rows: DataFrame, batch_id: int) -> None:
        started_us = now_us()
        checkpoint, last = self._checkpoint, self._checkpoint.last
        phases = Phases(rows.sparkSession, f"{self._plan.pipeline} · batch {batch_id}")
        committed = last.tables if last else {}
        tables = Tables(rows.sparkSession, checkpoint.files, committed, batch_id, self._standing)
        background = BackgroundJobs()
        try:
            with phases.phase("intake"):
                began_us = checkpoint.began_us(batch_id) or started_us
                files = checkpoint.files
                batch = Batch(batch_id, started_us, self.n_run, last, tables, background, files)
                at_hand = self._course.take_in(rows, began_us, batch)
            with phases.phase("stages"):
                flows = self._course.through(at_hand, batch)
            with phases.phase("output"):
                if self._rides:  # only then is it known what came, and whether there are letters
                    results = self._emit(flows[-1], batch_id)
                letters = post_letters(flows, tables, batch_id)
                tables.begin_own(background)
                if not self._rides:
                    results = self._emit(flows[-1], batch_id)
            with phases.phase("state"):
                for outcome in (one for flow in flows for one in flow.outcomes):
                    outcome.planned()
                tables.write(background)
                fates = settle(flows, letters, results["n_results"])
        finally:
            background.end()
        with phases.phase("commit"):
            arrivals = results if self._plan.dated else flows[-1].taken.numbers
            report = Report(
                pipeline=self._plan.pipeline,
                batch_id=batch_id,
                started_us=started_us,
                emitted_us=(emitted_us := now_us()),
                rows=fates,
                ledger=(last.ledger if last else Ledger()).after(fates).check(),
                n_results=results["n_results"],
                latency=(latency := read_latency(arrivals, emitted_us, self._plan.dated)),
                sources={name: one for flow in flows for name, one in flow.taken.progress.items()},
                decisions=tuple(decision for flow in flows for decision in flow.decisions),
                stages=stage_reports(_by_stage(flows, lambda outcome: outcome.numbers())),
                phases_s=dict(phases.seconds),
                promises=self._promises(latency),
            )
            checkpoint.commit(self._commit(report, flows, tables))
            self._standing = self._standing.replaced(tables.left)
        BatchRunner.n_run += 1
        with phases.phase("report"):
            checkpoint.reports.append(report.model_copy(update={"phases_s": phases.seconds}))
        with phases.phase("clean"):
            if checkpoint.trim():
                sweep(checkpoint.files, checkpoint.kept)
        _log(report)

    def _emit(self, flow: BranchResult, batch_id: int) -> dict[str, Any]:
        """Write the results; how many they are and when their rows arrived."""
        sink, rows, taken = self._plan.sink, flow.rows, flow.taken
        if flow.outcomes and flow.outcomes[-1].empty:
            return {"n_results": 0}
        if flow.outcomes and flow.outcomes[-1].ordered:
            rows = flow.outcomes[-1].ordered()
        if not sink.one_pass:
            return self._emit_cached(rows.persist(), batch_id)
        if self._rides:  # the results are the live rows themselves
            sink.write(rows, batch_id)
            numbers = taken.numbers | {"n_results": taken.intake.live}
        else:
            observed, seen = observe(rows, self._result_columns)
            sink.write(observed, batch_id)
            numbers = seen.get
        if not numbers["n_results"]:
            sink.forget(batch_id)
        return numbers

    def _emit_cached(self, rows: DataFrame, batch_id: int) -> dict[str, Any]:
        """The same for a sink that may read its rows any number of times."""
        try:
            numbers = measure(rows, self._result_columns)
            if numbers["n_results"]:
                self._plan.sink.write(rows, batch_id)
            return numbers
        finally:
            rows.unpersist()

    def _promises(self, latency: Latency | None) -> tuple[Promise, ...]:
        deadline_us = self._plan.deadline_us
        if deadline_us is None:
            return ()
        seen = latency.max_s if latency else None
        return (Promise(name="deadline", bound=deadline_us / 1e6, seen=seen, unit="s"),)

    def _commit(self, report: Report, flows: Sequence[BranchResult], tables: Tables) -> Commit:
        memories = _by_stage(flows, lambda outcome: outcome.memory())
        return Commit(
            batch_id=report.batch_id,
            ledger=report.ledger,
            tables=tables.next,
            memories=memories | {PROGRESS: self._progress.snapshot()},
            report=report,
        )


def _log(report: Report) -> None:
    where = f"{report.pipeline} · batch {report.batch_id}"
    log.info("%s: %d rows in, %d results", where, report.rows.rows_in, report.n_results)
    for promise in report.promises:
        if not promise.kept:
            log.warning("%s: %s %s, seen %s", where, promise.name, promise.bound, promise.seen)


def _by_stage(
    flows: Sequence[BranchResult], told: Callable[[Outcome], dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """What the outcomes tell, by the name of the stage; without those that tell nothing."""
    pairs = [(flow.branch.label(s.name), told(o)) for flow in flows for s, o in flow.staged]
    return {name: value for name, value in pairs if value}
