"""The micro-batch, exactly once: the path of every row.

Spark calls a `BatchRunner` with the rows of each micro-batch. It *observes* them, lets the stages
*decide* and *apply*, and makes output, state and ledger durable together:

    intake   materialize the rows, begin to count them
    stages   each stage in turn plans its work, as DataFrames
    output   the sink writes under the batch's id; a second try replaces the first
    state    state tables; the stages finish, and rows they reject are kept
    commit   one small file, last and atomic: now the batch has happened
    report   the batch's report is published
    clean    what no kept commit refers to is deleted

A crash before the commit leaves nothing that counts: Spark hands over the same rows under the same
id again, and everything is overwritten. A crash after it leaves a batch that is known to be done.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame

from laxity.core.ledger import Ledger
from laxity.core.progress import Progress
from laxity.core.report import Latency, Promise, Report, stage_reports
from laxity.errors import StateError
from laxity.spark.engine.account import Accounts, after, settled
from laxity.spark.engine.batch_stats import read_latency
from laxity.spark.engine.branch import Branch, BranchResult, Step
from laxity.spark.engine.branch_runner import BranchRunner
from laxity.spark.engine.failures import explained
from laxity.spark.engine.output import Output
from laxity.spark.engine.phases import Phases
from laxity.spark.engine.rejected import post_rejected
from laxity.spark.engine.sink import Sink
from laxity.spark.engine.stage import Batch
from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.rows.measure import Numbers
from laxity.spark.rows.wall import now_us
from laxity.spark.storage.checkpoint import Checkpoint
from laxity.spark.storage.commit import Commit, Table
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
        self._drains = False
        self.error: Exception | None = None
        sources = plan.branch.sources
        self._progress = Progress(
            [source.name for source in sources],
            {source.name: source.terms.idle_after_us for source in sources},
            now_us(),
        )
        if checkpoint.last:
            self._progress.restore(checkpoint.last.memories[PROGRESS], now_us())
        self._resident = ResidentTables()
        rides = not plan.branch.stages and plan.sink.one_pass
        self._branches = BranchRunner(plan.branch, self._progress, rides, plan.dated)
        self._output = Output(plan.sink, rides, plan.dated)
        sweep(checkpoint.files, checkpoint.kept)

    def drain(self) -> None:
        """Let the next batch be the last: the input has ended."""
        with self.busy:
            self._drains = True

    @property
    def drained(self) -> bool:
        """Whether the last batch let everything out."""
        last = self._checkpoint.last
        return self._drains and last is not None and last.drained

    def left(self) -> str:
        """What is still to come from rows that are there already, in words; empty if nothing."""
        last = self._checkpoint.last
        if last is None or last.drained:
            return ""
        stages = [(b.label(s.name), s) for b in self._plan.branch.walk() for s in b.stages]
        unfinished = {
            label: stage.unfinished(last.memories.get(label, {})) for label, stage in stages
        }
        return "; ".join(f"{label}: {words}" for label, words in unfinished.items() if words)

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
                    self.stopping = self._drains
            except Exception as error:
                self.error = explained(error, self._checkpoint.files.uri, batch_id)
                raise

    def _run(self, rows: DataFrame, batch_id: int) -> None:
        tables, background = self._tables(rows, batch_id), BackgroundJobs()
        batch = self._batch(batch_id, tables, background)
        phases = Phases(rows.sparkSession, f"{self._plan.pipeline} · batch {batch_id}")
        try:
            with phases.phase("intake"):
                began_us = self._checkpoint.began_us(batch_id) or batch.now_us
                materials = self._branches.take_in(rows, began_us, batch)
                tables.open()  # while the rows are counted
            with phases.phase("stages"):
                results = self._branches.planned(materials, batch)
            with phases.phase("output"):
                tables.begin_own(background)
                written = self._output.write(results[-1], batch_id)
            with phases.phase("state"):
                for job in (job for result in results for job in _jobs(result)):
                    job()
                tables.write(background)
                results = [result.finished() for result in results]
                posted = post_rejected(results, tables, batch_id)
                tables.write(background)
                accounts = settled(results, self._held, posted, written["n_results"])
        finally:
            background.end()
        with phases.phase("commit"):
            report = self._report(batch, results, accounts, written, phases)
            self._checkpoint.commit(self._commit(report, results, tables.next))
            self._resident = self._resident.replaced(tables.left)
        BatchRunner.n_run += 1
        with phases.phase("report"):
            report = report.model_copy(update={"phases_s": phases.seconds})
            self._checkpoint.reports.append(report)
        with phases.phase("clean"):
            if self._checkpoint.trim():
                sweep(self._checkpoint.files, self._checkpoint.kept)
        _log(report)

    def _tables(self, rows: DataFrame, batch_id: int) -> Tables:
        """The state tables as the last commit left them."""
        last, files = self._checkpoint.last, self._checkpoint.files
        committed = last.tables if last else {}
        return Tables(rows.sparkSession, files, committed, batch_id, self._resident)

    def _batch(self, batch_id: int, tables: Tables, background: BackgroundJobs) -> Batch:
        return Batch(
            batch_id=batch_id,
            now_us=now_us(),
            n_run=self.n_run,
            last=self._checkpoint.last,
            tables_of=tables.of,
            background=background,
            files=self._checkpoint.files,
            drain=self._drains,
        )

    @property
    def _held(self) -> dict[str, int]:
        """How many rows each stage held before this batch."""
        last = self._checkpoint.last
        return {label: ledger.held for label, ledger in last.accounts.items()} if last else {}

    def _report(
        self,
        batch: Batch,
        results: Sequence[BranchResult],
        accounts: Accounts,
        written: Numbers,
        phases: Phases,
    ) -> Report:
        """What the batch did; its accounts add up."""
        last, steps = batch.last, [step for result in results for step in result.steps]
        stages = after(last.accounts if last else {}, accounts)
        ledger = (last.ledger if last else Ledger()).after(accounts.whole).check()
        arrivals = written if self._plan.dated else results[-1].intake.numbers
        emitted_us = now_us()
        latency = read_latency(arrivals, emitted_us, self._plan.dated, written["n_results"])
        return Report(
            pipeline=self._plan.pipeline,
            batch_id=batch.batch_id,
            started_us=batch.now_us,
            emitted_us=emitted_us,
            rows=accounts.whole,
            ledger=ledger,
            accounts=stages,
            n_results=written["n_results"],
            latency=latency,
            sources={n: one for result in results for n, one in result.intake.progress.items()},
            decisions=tuple(decision for result in results for decision in result.decisions),
            stages=stage_reports({s.label: s.result.report for s in steps if s.result.report}),
            phases_s=dict(phases.seconds),
            promises=tuple(self._promises(latency, steps)),
            drained=batch.drain,
        )

    def _commit(
        self, report: Report, results: Sequence[BranchResult], tables: dict[str, Table]
    ) -> Commit:
        """All that becomes durable."""
        states = {s.label: s.result.state for r in results for s in r.steps if s.result.state}
        return Commit(
            batch_id=report.batch_id,
            ledger=report.ledger,
            accounts=report.accounts,
            tables=tables,
            memories=states | {PROGRESS: self._progress.snapshot()},
            drained=report.drained,
            report=report,
        )

    def _promises(self, latency: Latency | None, steps: Sequence[Step]) -> Iterator[Promise]:
        """What was promised, and what was seen."""
        if self._plan.deadline_us is not None:
            seen = latency.max_s if latency else None
            yield Promise(name="deadline", bound=self._plan.deadline_us / 1e6, seen=seen, unit="s")
        for step in steps:
            for terms in step.stage.promises:
                seen = step.result.seen.get(terms.name)
                yield Promise(name=terms.name, bound=terms.bound, seen=seen, unit=terms.unit)


def _jobs(result: BranchResult) -> list[Callable[[], object]]:
    """What waits for the jobs of a branch that plan tables."""
    return [job for step in result.steps for job in step.planned.jobs]


def _log(report: Report) -> None:
    where = f"{report.pipeline} · batch {report.batch_id}"
    log.info("%s: %d rows in, %d results", where, report.rows.rows_in, report.n_results)
    for promise in report.promises:
        if not promise.kept:
            log.warning("%s: %s %s, seen %s", where, promise.name, promise.bound, promise.seen)
