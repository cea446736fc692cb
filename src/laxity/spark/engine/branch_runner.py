"""The way of a micro-batch through the branches of a query.

The rows of all sources are materialized once. Each branch counts its part, lets its stages plan
their work on it, and hands what they made to the next branch, as rows of one more source.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from laxity.core.progress import Heard, Progress, SourceState
from laxity.errors import StateError
from laxity.spark.engine.arrivals import stamped, with_raw
from laxity.spark.engine.batch_stats import (
    Intake,
    arrival_columns,
    asked_columns,
    intake_columns,
    live,
    named,
    packed,
    unpacked,
)
from laxity.spark.engine.branch import Branch, BranchResult, Step, made_rows, sources_rows, together
from laxity.spark.engine.planned import Needs, Planned
from laxity.spark.engine.stage import Batch, BatchContext
from laxity.spark.rows.columns import quoted_name
from laxity.spark.rows.materialize import Loan, materialized
from laxity.spark.rows.measure import Numbers, measure, observe
from laxity.spark.rows.partitioning import co_partitioned


@dataclass(frozen=True)
class Materials:
    """The rows of all sources; what branches that take in no others got of them."""

    rows: Callable[[], DataFrame]
    intakes: Mapping[str, Intake]
    loan: Loan | None = None


@dataclass(frozen=True)
class _Entering:
    """Rows on their way into a stage, and what it asked to know of them, if anybody counts."""

    rows: DataFrame
    asked: Callable[[], Numbers] | None


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

    def take_in(self, rows: DataFrame, began_us: int, batch: Batch) -> Materials:
        """Begin to observe the rows of all sources, packed, of a batch that began then."""
        query = self._query
        names = [source.name for source in query.sources]
        if self._rides:
            rows = stamped(rows, query.sources, began_us)
            observed, riding = observe(rows, self._columns[query.name])
            all_rows, advance = self._all_rows(rows), self._advance(query, {}, batch)
            alive = live(observed, names)
            intake = Intake(alive, all_rows, riding.arrive, query.names, advance)
            return Materials(all_rows, {query.name: intake})
        at_hand = materialized(self._by_key(rows, batch))
        batch.background.at_end((loan := Loan(at_hand.release)).end)
        kept_rows = stamped(at_hand.rows, query.sources, began_us)
        all_rows = self._all_rows(kept_rows)
        intakes: dict[str, Intake] = {}
        for branch in query.walk():
            if not branch.before:
                own_rows, everything = kept_rows, all_rows
                if query.before:
                    own_rows = packed(sources_rows(branch, all_rows()), branch.names)
                    everything = partial(unpacked, own_rows, branch.names)
                intakes[branch.name] = self._counted(branch, own_rows, everything, {}, batch)
        return Materials(all_rows, intakes, loan)

    def _by_key(self, rows: DataFrame, batch: Batch) -> DataFrame:
        """The rows, those of a key in one place if the first stage works by key."""
        query = self._query
        if not query.stages:
            return rows
        key = _needs(query, 0, batch).key
        return co_partitioned(rows, key) if key and set(key) <= set(rows.columns) else rows

    def _all_rows(self, stamped_rows: DataFrame) -> Callable[[], DataFrame]:
        """What gives the rows unpacked, for those who ask."""
        sources = self._query.sources
        names = [source.name for source in sources]
        return lambda: unpacked(with_raw(stamped_rows, sources), names)

    def planned(self, materials: Materials, batch: Batch) -> list[BranchResult]:
        """What the branches plan to do with the rows, the query's own last."""
        results: dict[str, BranchResult] = {}
        for branch in self._query.walk():
            before = {one.name: results[one.name] for one in branch.before}
            intake = materials.intakes.get(branch.name)
            if intake is None:
                intake = self._from_branches(branch, materials, before, batch)
            steps = self._steps(branch, intake, materials, before, batch)
            results[branch.name] = BranchResult(branch, intake, steps)
        return list(results.values())

    def _from_branches(
        self, branch: Branch, materials: Materials, before: Mapping[str, BranchResult], batch: Batch
    ) -> Intake:
        """What a branch takes in that has others among its inputs."""
        made = [_at_hand(made_rows(name, one.rows), batch) for name, one in before.items()]
        rows = together(sources_rows(branch, materials.rows()), made, batch.now_us)
        own_rows = packed(rows, branch.names)
        return self._counted(
            branch, own_rows, partial(unpacked, own_rows, branch.names), before, batch
        )

    def _counted(
        self,
        branch: Branch,
        rows: DataFrame,
        everything: Callable[[], DataFrame],
        before: Mapping[str, BranchResult],
        batch: Batch,
    ) -> Intake:
        """Packed rows; a job begins to find out what the intake and the first stage want to know.

        `everything` gives them unpacked, the dead with themselves as JSON.
        """
        columns, asked = list(self._columns[branch.name]), dict[str, str]()
        if branch.stages:
            asked.update(_needs(branch, 0, batch).numbers)
        counted = named(rows, branch.names) if "_source" in "".join(asked.values()) else rows
        columns += asked_columns(asked)
        observed = batch.background.start(partial(measure, counted, columns))
        alive, advance = live(rows, branch.names), self._advance(branch, before, batch)
        return Intake(alive, everything, observed, branch.names, advance)

    def _advance(
        self, branch: Branch, before: Mapping[str, BranchResult], batch: Batch
    ) -> Callable[[dict[str, Heard]], dict[str, SourceState]]:
        """How far each input comes with what was heard."""

        def advance(heard: dict[str, Heard]) -> dict[str, SourceState]:
            states = self._progress.advance(heard, batch.now_us)
            states |= {name: one.state for name, one in before.items()}
            return {name: states[name] for name in branch.names}

        return advance

    def _steps(
        self,
        branch: Branch,
        intake: Intake,
        materials: Materials,
        before: Mapping[str, BranchResult],
        batch: Batch,
    ) -> list[Step]:
        """What each stage plans to do with the rows, in order."""
        steps: list[Step] = []
        for n, stage in enumerate(branch.stages):
            label, needs = branch.label(stage.name), _needs(branch, n, batch)
            last = steps[-1].planned if steps else None
            if last is None:
                entering = _Entering(intake.live, lambda: intake.asked)
            else:
                entering = _behind(last, needs, batch)
            context = replace(
                self._context(branch, label, intake, before, batch),
                asked=entering.asked or partial(_unknown, label),
                before=last,
                loan=None if steps else materials.loan,
            )
            planned = stage.plan(entering.rows, context)
            if planned.frontier is None and last is not None:
                planned = replace(planned, frontier=last.frontier)
            n_rows = None if entering.asked is None else int(entering.asked()["n_rows"])
            steps.append(Step(label, stage, planned, n_rows))
        return steps

    def _context(
        self,
        branch: Branch,
        label: str,
        intake: Intake,
        before: Mapping[str, BranchResult],
        batch: Batch,
    ) -> BatchContext:
        """The batch as a stage of a branch sees it."""
        query = self._query
        leading = query.label(query.stages[0].name) if query.stages else ""
        return BatchContext(
            batch=batch,
            state=batch.state(label),
            tables=batch.tables_of(label),
            came=lambda: intake.stats,
            progress=lambda: intake.progress,
            asked=None,
            heard={name: seen for one in before.values() for name, seen in one.heard.items()},
            leading=batch.state(leading),
            passes_on=branch is not query,
        )


def _needs(branch: Branch, n: int, batch: Batch) -> Needs:
    """What a branch's stage needs in this batch."""
    stage = branch.stages[n]
    return stage.needs(batch.state(branch.label(stage.name)))


def _behind(last: Planned, needs: Needs, batch: Batch) -> _Entering:
    """Rows of the stage before, with what the next one needs of them."""
    rows = last.rows
    if last.empty:
        return _Entering(rows, lambda: {"n_rows": 0})
    if needs.key and set(needs.key) <= set(rows.columns):
        rows = co_partitioned(rows, needs.key)
    if needs.ordered and last.order is not None:
        rows = rows.sortWithinPartitions(*last.order.by)
    if not needs.looked_at:
        return _Entering(rows, None)
    rows = _at_hand(rows, batch)
    columns = [f"{text} AS {quoted_name(name)}" for name, text in needs.numbers.items()]
    counted = partial(measure, rows, [*columns, "count(1) AS n_rows"])
    return _Entering(rows, batch.background.start(counted))


def _unknown(label: str) -> dict[str, Any]:
    raise StateError(f"stage {label} asks for numbers of its rows: say so in needs()")


def _at_hand(rows: DataFrame, batch: Batch) -> DataFrame:
    """What a stage made, kept until the batch is over."""
    at_hand = materialized(rows, made=True)
    batch.background.at_end(at_hand.release)
    return at_hand.rows
