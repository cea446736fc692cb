"""A stage: what happens to the rows of every micro-batch between intake and sink.

A stage is called once a batch with the rows, and a `Turn` that tells it the time, what the intake
saw, its own memory and the state tables. It answers with an `Outcome`. Stages build DataFrames;
the batch protocol decides when they run and when anything becomes durable. So a stage writes
nothing but what it planned for a table, which may begin early (`Tables.begin`), and must answer
alike when it is called again for the same batch after a crash. What it must count it counts beside
the other jobs of the batch (`Turn.aside`), and tells when asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame

from laxity.core.ledger import Fates
from laxity.core.progress import SourceState
from laxity.core.report import Decision, Report
from laxity.core.slack import Seen
from laxity.spark.engine.batch_stats import BatchStats
from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.rows.materialize import Loan
from laxity.spark.storage.files import Files
from laxity.spark.storage.state import Tables


@dataclass(frozen=True)
class Start:
    """What a stage may know of a micro-batch before it is known what came.

    `memory`: what it wanted back. `aside` begins a job that runs beside the others; what it gives
    waits for it. `loan`: the rows at hand, if it may keep them for later batches.
    """

    memory: dict[str, Any]
    tables: Tables
    background: BackgroundJobs
    loan: Loan | None


@dataclass(frozen=True)
class Turn(Start):
    """What a stage may know of the micro-batch at hand.

    `sources`: how far each has come, this batch included. `seen`: what the stage asked the intake
    to observe. `n_run`: how many batches this process has run, `last` the report of the one before
    this. `before`: what the stage before made of the batch. `files`: the checkpoint's. `begun`:
    what the stage began, if it is the first.

    Where a query has several merges: `heard` is what those before this one saw, `leads` the memory
    of the last one, and `passes_on` that results go to another merge, not to the sink.
    """

    batch_id: int
    now_us: int
    intake: BatchStats
    sources: dict[str, SourceState]
    seen: dict[str, Any]
    n_run: int
    last: Report | None
    before: "Outcome | None"
    files: Files
    begun: object = None
    heard: Mapping[str, Seen] = field(default_factory=dict)
    leads: dict[str, Any] = field(default_factory=dict)
    passes_on: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a stage made of its rows; what has to be counted first is asked after the output.

    `memory` gives what it wants back next time (JSON values). A stage that holds or drops rows says
    in `fates` what became of them, `released` being those it passed on. `numbers` gives what the
    report tells of the stage. `late` gives the rows counted as `late_rejected`, with their columns
    and `late_by` in seconds; `dead` those counted as dead, with a `_reason`. `ordered` gives the
    rows as they are to be written, if they have an order. `empty`: there are no rows, and no need
    to look. `whole`: the rows are those released and nothing made of them, so as many must be
    written. `planned` waits until all that is to be kept has been planned. `heard`: what
    a merge saw, by the name its slack rule goes by, if another merge decides on it.
    """

    rows: DataFrame
    memory: Callable[[], dict[str, Any]] = dict
    fates: Callable[[], Fates] | None = None
    numbers: Callable[[], dict[str, Any]] = dict
    decisions: tuple[Decision, ...] = ()
    late: Callable[[], DataFrame] | None = None
    dead: Callable[[], DataFrame] | None = None
    ordered: Callable[[], DataFrame] | None = None
    empty: bool = False
    whole: bool = False
    planned: Callable[[], object] = dict
    heard: Mapping[str, Seen] = field(default_factory=dict)


class Stage(Protocol):
    """Anything that can stand between intake and sink; most need not say all of it."""

    @property
    def name(self) -> str:
        """How the contract, the memory and the reports call it."""

    @property
    def terms(self) -> str:
        """What it promises, for the contract."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns whose rows the intake is to bring together for it, if it matters."""
        return ()

    def observes(self, memory: dict[str, Any]) -> Sequence[Column]:
        """Aggregates, by name, that the intake is to take of the rows for this stage."""
        return ()

    def begin(self, rows: DataFrame, start: Start) -> object:
        """What the first stage can begin while the rows are counted; the Turn gives it back."""
        return None

    def __call__(self, rows: DataFrame, turn: Turn) -> Outcome:
        """Work on the rows of one micro-batch."""


@dataclass(frozen=True)
class Apply(Stage):
    """The user's own function of the rows; what enters it counts as released."""

    fn: Callable[[DataFrame], DataFrame]
    position: int
    per_batch: bool = False

    @property
    def name(self) -> str:
        """Its place in the pipeline, so that two of them keep apart."""
        return f"apply-{self.position}"

    @property
    def terms(self) -> str:
        """The function's name, and whether it is one of each batch by itself."""
        return f"{self.called}, each batch by itself" if self.per_batch else self.called

    @property
    def called(self) -> str:
        """The function's name."""
        return getattr(self.fn, "__name__", type(self.fn).__name__)

    def __call__(self, rows: DataFrame, turn: Turn) -> Outcome:
        """The function's result."""
        return Outcome(self.fn(rows))
