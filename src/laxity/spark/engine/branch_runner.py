"""The way of a micro-batch through the branches of a query.

The rows of all sources are kept at hand once. Each branch counts its part, lets its stages work on
it, and hands what they made to the next branch, as rows of one more source.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from laxity.core.progress import Heard, Progress, SourceState
from laxity.core.report import Decision
from laxity.core.slack import Seen
from laxity.spark.engine.arrivals import stamped, with_raw
from laxity.spark.engine.batch_stats import (
    Taken,
    arrival_columns,
    intake_columns,
    live,
    packed,
    unpacked,
)
from laxity.spark.engine.branch import Branch, made_rows, sources_rows, together
from laxity.spark.engine.stage import Outcome, Stage, Start, Turn
from laxity.spark.merging.merge import Merge
from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.rows.materialize import Loan, kept
from laxity.spark.rows.measure import measure, observe
from laxity.spark.rows.partitioning import co_partitioned
from laxity.spark.storage.checkpoint import Commit
from laxity.spark.storage.files import Files
from laxity.spark.storage.state import Tables


@dataclass(frozen=True)
class Batch:
    """What all branches know of the micro-batch at hand; `last` is the commit before it."""

    batch_id: int
    now_us: int
    n_run: int
    last: Commit | None
    tables: Tables
    background: BackgroundJobs
    files: Files

    def memory(self, label: str) -> dict[str, Any]:
        """What a stage wanted back from the last batch."""
        return self.last.memories.get(label, {}) if self.last else {}

    def start(self, branch: Branch, loan: Loan | None) -> Start:
        """What a branch's first stage may know before it is known what came."""
        memory = self.memory(branch.label(branch.stages[0].name))
        return Start(memory, self.tables.called(branch.label), self.background, loan)


@dataclass(frozen=True)
class BranchResult:
    """What came of a micro-batch in one branch."""

    branch: Branch
    taken: Taken
    outcomes: Sequence[Outcome]

    @property
    def staged(self) -> list[tuple[Stage, Outcome]]:
        """What each stage made of it."""
        return list(zip(self.branch.stages, self.outcomes, strict=True))

    @property
    def decisions(self) -> list[Decision]:
        """What its stages decided, under the names they have in the query."""
        told = [one for outcome in self.outcomes for one in outcome.decisions]
        return [d.model_copy(update={"stage": self.branch.label(d.stage)}) for d in told]

    @property
    def rows(self) -> DataFrame:
        """The results."""
        return self.outcomes[-1].rows if self.outcomes else self.taken.live

    @property
    def state(self) -> SourceState:
        """How far the branch has come, as an input of another: as far as its merge has released.

        It is idle when all its inputs are, since a merge then waits for nobody.
        """
        inputs = self.taken.progress.values()
        return SourceState(
            newest_us=self.outcomes[0].decisions[0].values["frontier_us"],
            heard_us=max(one.heard_us for one in inputs),
            idle=all(one.idle for one in inputs),
        )

    @property
    def heard(self) -> dict[str, Seen]:
        """What its merge, and those before, saw, for the one that decides."""
        return dict(self.outcomes[0].heard)


@dataclass(frozen=True)
class AtHand:
    """The rows of all sources; what branches that take in no others got, and what they began."""

    rows: Callable[[], DataFrame]
    taken: Mapping[str, Taken]
    begun: Mapping[str, object] = field(default_factory=dict)
    loan: Loan | None = None


class BranchRunner:
    """Takes micro-batches through the branches of a query, the last of which is `query`.

    `rides`: there are no stages and one pass at the sink, so rows are counted there. `dated`: the
    results tell when their rows arrived.
    """

    def __init__(self, query: Branch, progress: Progress, rides: bool, dated: bool) -> None:
        self._query, self._progress, self._rides = query, progress, rides
        self._columns = {branch.name: intake_columns(branch.names) for branch in query.walk()}
        if rides or not dated:
            constant = all(source.arrival is None for source in query.sources)
            self._columns[query.name] += arrival_columns(constant)

    def take_in(self, rows: DataFrame, began_us: int, batch: Batch) -> AtHand:
        """Observe the rows of all sources, packed, of a batch that began then."""
        query = self._query
        names = [source.name for source in query.sources]
        if self._rides:
            rows = stamped(rows, query.sources, began_us)
            observed, seen = observe(rows, self._columns[query.name])
            all_rows = self._all_rows(rows)
            advance = self._advance(query, {}, batch)
            taken = Taken(live(observed, names), all_rows, lambda: seen.get, query.names, advance)
            return AtHand(all_rows, {query.name: taken})
        at_hand = kept(_by_key(rows, query))
        batch.background.last((loan := Loan(at_hand.release)).end)
        kept_rows = stamped(at_hand.rows, query.sources, began_us)
        all_rows = self._all_rows(kept_rows)
        first: dict[str, Taken] = {}
        for branch in query.walk():
            if not branch.before:
                mine, entire = kept_rows, all_rows
                if query.before:
                    mine = packed(sources_rows(branch, all_rows()), branch.names)
                    entire = partial(unpacked, mine, branch.names)
                first[branch.name] = self._counted(branch, mine, entire, {}, batch)
        begun = {
            branch.name: branch.stages[0].begin(first[branch.name].live, batch.start(branch, loan))
            for branch in query.walk()
            if branch.name in first and branch.stages
        }
        batch.tables.open()  # while the rows are counted
        return AtHand(all_rows, {name: taken.known() for name, taken in first.items()}, begun, loan)

    def _all_rows(self, stamped_rows: DataFrame) -> Callable[[], DataFrame]:
        """What gives the rows unpacked, for those who ask."""
        sources = self._query.sources
        names = [source.name for source in sources]
        return lambda: unpacked(with_raw(stamped_rows, sources), names)

    def through(self, at_hand: AtHand, batch: Batch) -> list[BranchResult]:
        """What the branches made of the rows, the query's own last."""
        flows: dict[str, BranchResult] = {}
        for branch in self._query.walk():
            before = {one.name: flows[one.name] for one in branch.before}
            taken = at_hand.taken.get(branch.name)
            if taken is None:
                made = [_kept(made_rows(n, one.rows), batch, True) for n, one in before.items()]
                rows = together(sources_rows(branch, at_hand.rows()), made, batch.now_us)
                mine = packed(rows, branch.names)
                entire = partial(unpacked, mine, branch.names)
                taken = self._counted(branch, mine, entire, before, batch)
            outcomes = self._staged(branch, taken, at_hand, before, batch)
            flows[branch.name] = BranchResult(branch, taken, outcomes)
        return list(flows.values())

    def _counted(
        self,
        branch: Branch,
        rows: DataFrame,
        entire: Callable[[], DataFrame],
        before: Mapping[str, BranchResult],
        batch: Batch,
    ) -> Taken:
        """Packed rows; a job begins to find out what the intake and the stages want to know.

        `entire` gives them unpacked, the dead with themselves as JSON.
        """
        memories = [(stage, batch.memory(branch.label(stage.name))) for stage in branch.stages]
        asked = [column for stage, memory in memories for column in stage.observes(memory)]
        columns = [*self._columns[branch.name], *asked]
        observed = batch.background.begin(lambda: measure(rows, columns))
        alive, advance = live(rows, branch.names), self._advance(branch, before, batch)
        return Taken(alive, entire, observed, branch.names, advance)

    def _advance(
        self, branch: Branch, before: Mapping[str, BranchResult], batch: Batch
    ) -> Callable[[dict[str, Heard]], dict[str, SourceState]]:
        """How far each input comes with what was heard."""

        def advance(heard: dict[str, Heard]) -> dict[str, SourceState]:
            states = self._progress.advance(heard, batch.now_us)
            states |= {name: flow.state for name, flow in before.items()}
            return {name: states[name] for name in branch.names}

        return advance

    def _staged(
        self,
        branch: Branch,
        taken: Taken,
        at_hand: AtHand,
        before: Mapping[str, BranchResult],
        batch: Batch,
    ) -> list[Outcome]:
        """What each stage made of the rows, in order."""
        heard = {name: seen for flow in before.values() for name, seen in flow.heard.items()}
        rows, outcomes = taken.live, list[Outcome]()
        for stage in branch.stages:
            turn = Turn(
                batch_id=batch.batch_id,
                now_us=batch.now_us,
                intake=taken.intake,
                sources=taken.progress,
                seen=taken.numbers,
                n_run=batch.n_run,
                last=batch.last.report if batch.last else None,
                before=outcomes[-1] if outcomes else None,
                memory=batch.memory(branch.label(stage.name)),
                tables=batch.tables.called(branch.label),
                background=batch.background,
                files=batch.files,
                begun=None if outcomes else at_hand.begun.get(branch.name),
                loan=at_hand.loan,
                heard=heard,
                leads=batch.memory(self._query.label(Merge.name)),
                passes_on=branch is not self._query,
            )
            outcome = stage(rows, turn)
            rows = outcome.rows
            outcomes.append(outcome)
        return outcomes


def _by_key(rows: DataFrame, query: Branch) -> DataFrame:
    """The rows, those of a key in one place if the first stage works by key."""
    key = query.stages[0].key if query.stages else ()
    return co_partitioned(rows, key) if key and set(key) <= set(rows.columns) else rows


def _kept(rows: DataFrame, batch: Batch, made: bool = False) -> DataFrame:
    """The rows, kept until the batch is over."""
    at_hand = kept(rows, made)
    batch.background.last(at_hand.release)
    return at_hand.rows
