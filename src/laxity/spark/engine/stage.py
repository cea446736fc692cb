"""A stage: what happens to the rows of every micro-batch between intake and sink.

Two steps. `plan` gets the rows and a `BatchContext`, builds DataFrames, plans state tables and says
what has to be counted; it may begin jobs beside the others and wait for them. Then the engine lets
the results be written, and with them everything that rides on those jobs. `finish` gets the counts
and says what the batch came to: state, fates, report, promises, rows it rejects. It may still add
tables. The engine decides when each step runs and when anything becomes durable, so a stage writes
nothing itself, and must answer alike when it is called again for the same batch after a crash.

What a stage `needs` of its rows it gets wherever it stands: numbers about them before it decides,
a key's rows in one place, an order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame

from laxity.contract import PromiseTerms
from laxity.core.progress import SourceState
from laxity.core.report import Report
from laxity.core.slack import Seen
from laxity.spark.engine.batch_stats import BatchStats
from laxity.spark.engine.planned import Needs, Planned
from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.rows.materialize import Loan
from laxity.spark.rows.measure import Numbers, Riding, measure, observe
from laxity.spark.storage.commit import Commit
from laxity.spark.storage.files import Files
from laxity.spark.storage.resident import Chunk


class StateTables(Protocol):
    """The state tables of a stage: read as of the last batch, written with this one's commit."""

    def read(self, name: str) -> DataFrame | None:
        """The rows of a table; None if nothing is left of it."""

    def replace(self, name: str, rows: DataFrame, within: str | None = None) -> None:
        """Make these the table's only rows."""

    def append(
        self,
        name: str,
        rows: DataFrame,
        *,
        expire_by: str | None = None,
        newest: int | None = None,
        made: Callable[[], DataFrame] | None = None,
        within: str | None = None,
    ) -> None:
        """Add rows, which may expire by a whole number of theirs."""

    def expire(self, name: str, before: int) -> None:
        """Forget the rows below `before`."""

    def begin(self, name: str, background: BackgroundJobs, n_rows: int | None = None) -> None:
        """Begin to write what was planned for a table."""

    def at_hand(
        self,
        name: str,
        laid: Callable[[DataFrame], DataFrame],
        background: BackgroundJobs,
        beside: str | None = None,
    ) -> DataFrame | None:
        """The rows of a table, which stay in memory from batch to batch where that can be."""

    def stay(
        self, name: str, new: Sequence[Chunk], background: BackgroundJobs, anew: bool = False
    ) -> None:
        """Leave in memory what this batch adds to a table."""


@dataclass(frozen=True)
class Batch:
    """The micro-batch at hand; `last` is the commit before it, `n_run` how many this process ran.

    `drain`: the input has ended, and this is the batch that lets everything out.
    """

    batch_id: int
    now_us: int
    n_run: int
    last: Commit | None
    tables_of: Callable[[str], StateTables]
    background: BackgroundJobs
    files: Files
    drain: bool = False

    def state(self, label: str) -> dict[str, Any]:
        """What a stage wanted back from the last batch."""
        return self.last.memories.get(label, {}) if self.last else {}


@dataclass(frozen=True)
class BatchContext:
    """A micro-batch as one stage sees it; everything in it is the stage's own.

    `state`: what it wanted back. `tables`: its state tables. `came` gives what its branch took in,
    `sources` how far each input has come: both wait until the rows are counted, so what can begin
    before is best begun before. `before`: the plan of the stage before. `loan`: the rows at hand,
    if it may keep them for later batches. `files`: the checkpoint's.

    Where a query has several merges: `heard` is what those before this one saw, `leading` the state
    of the first stage of the last branch, and `passes_on` that results go to another branch.
    """

    batch: Batch
    state: dict[str, Any]
    tables: StateTables
    came: Callable[[], BatchStats]
    progress: Callable[[], dict[str, SourceState]]
    asked: Callable[[], Numbers] | None
    before: Planned | None = None
    loan: Loan | None = None
    heard: Mapping[str, Seen] = field(default_factory=dict)
    leading: dict[str, Any] = field(default_factory=dict)
    passes_on: bool = False

    @property
    def batch_id(self) -> int:
        """The number of the batch."""
        return self.batch.batch_id

    @property
    def now_us(self) -> int:
        """When the batch began."""
        return self.batch.now_us

    @property
    def drain(self) -> bool:
        """Whether the input has ended: hold nothing back, and be done with everything."""
        return self.batch.drain

    @property
    def last(self) -> Report | None:
        """The report of the batch before."""
        return self.batch.last.report if self.batch.last else None

    @property
    def background(self) -> BackgroundJobs:
        """Begins jobs that run beside the others."""
        return self.batch.background

    @property
    def files(self) -> Files:
        """The checkpoint's."""
        return self.batch.files

    @property
    def stats(self) -> BatchStats:
        """What the branch took in; waits until it is counted."""
        return self.came()

    @property
    def sources(self) -> dict[str, SourceState]:
        """How far each input has come, this batch included; waits likewise."""
        return self.progress()

    @property
    def numbers(self) -> Numbers:
        """What the stage asked to know of its rows, and `n_rows`; waits until they are counted."""
        return {"n_rows": 0} if self.asked is None else self.asked()

    def measure(self, rows: DataFrame, columns: Sequence[Column | str]) -> Callable[[], Numbers]:
        """Count rows in a job that begins now; what comes back waits for it."""
        return self.background.start(partial(measure, rows, columns))

    def observe(self, rows: DataFrame, columns: Sequence[Column | str]) -> tuple[DataFrame, Riding]:
        """Count rows on the way of the job that reads them first; for `Planned.counts`."""
        return observe(rows, columns)


class Stage(Protocol):
    """Anything that can stand between intake and sink; most need not say all of it.

    `makes_rows`: what it passes on is made by it, and not the rows that entered.
    """

    makes_rows: bool = False

    @property
    def name(self) -> str:
        """How the contract, the state, the tables and the reports call it."""

    @property
    def terms(self) -> str:
        """What it does, for the contract."""

    @property
    def promises(self) -> Sequence[PromiseTerms]:
        """What it promises, if it can be kept or broken."""
        return ()

    def needs(self, state: dict[str, Any]) -> Needs:
        """What it needs of its rows, given its state."""
        return Needs()

    def unfinished(self, state: dict[str, Any]) -> str:
        """What a drain would still bring out, in words; empty if nothing."""
        return ""

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        """Plan the work on the rows of one micro-batch."""
