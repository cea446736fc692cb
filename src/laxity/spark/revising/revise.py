"""Revise on Spark: answer at once, and again what late rows change.

`laxity.core.revise` has the mathematics; here they become filters and joins. A batch without late
rows evaluates the app once, on its rows and those of the last span, and keeps the results between
the edge before and the edge after. Late rows that are due add the results they affect, evaluated on
slices of the history (`replay.py`); which rows the history keeps is told in `history.py`. What is
on the way to the results is planned first, and what is kept for later batches beside their writing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.ledger import Fates
from laxity.core.moment import CONTEXTS, JOINED, RECENT, Moment, ReviseState
from laxity.core.triggers import Trigger
from laxity.durations import show_us
from laxity.spark.engine.stage import Outcome, Stage, Start, Turn
from laxity.spark.revising.app import App, Evaluation
from laxity.spark.revising.column_pruning import PrunedColumns
from laxity.spark.revising.emission import Emission, told
from laxity.spark.revising.findings import NO_RESULTS, Findings, by_status, numbers_of
from laxity.spark.revising.late_rows import LateRows, decision, new_holes, settled, undisputed
from laxity.spark.revising.places import Places
from laxity.spark.revising.retained import Added, Retained
from laxity.spark.revising.suspects import SuspectRows
from laxity.spark.revising.time_shift import TimeShiftedQuery
from laxity.spark.revising.visible import VisibleRows, lateness, too_late
from laxity.spark.rows.columns import EVENT_US
from laxity.spark.rows.measure import measure, observe
from laxity.spark.rows.results import keyed


@dataclass(frozen=True)
class Begun:
    """The rows a batch may look at, and by key what they say together."""

    known: VisibleRows
    keys: DataFrame | None


@dataclass(frozen=True)
class Revise(Stage):
    """Answers at once; evaluates again what rows up to `lateness_us` late change.

    `alone`: no stage stands before, so the intake sees the same rows.
    """

    app: App
    places: Places
    pruned: PrunedColumns
    lateness_us: int
    trigger: Trigger
    alone: bool

    name = "revise"

    @property
    def terms(self) -> str:
        """How far results change, and what is kept for it."""
        span_us, step, number = self.app.shape.span_us, self.places.step, self.places.number
        if step is None:
            whole = show_us(self.lateness_us + span_us)
            keeps = f"missing rows cannot be seen, so all rows of {whole} are kept"
        else:
            every = f"numbered by {number}" if number else f"one every {show_us(step)}"
            keeps = (
                f"rows {every}; kept are those of {show_us(span_us)} and those near missing ones"
            )
        trigger = getattr(self.trigger, "__name__", "own")
        own = " as its own query" if self.app.own_query else ""
        return (
            f"{self.app.name}{own} by {', '.join(self.places.by)}, rows up to "
            f"{show_us(self.lateness_us)} late, trigger {trigger}; {keeps}"
        )

    @property
    def key(self) -> tuple[str, ...]:
        """What the app and all that is found out about late rows go by."""
        return self.places.by if self.alone else ()

    def observes(self, memory: dict[str, Any]) -> Sequence[Column]:
        """How many rows are on time, late and too late."""
        if not self.alone:
            return ()
        said = lateness(self._moment(memory, None)).items()
        counts = (f"count_if(_dead IS NULL AND {holds}) AS {name}" for name, holds in said)
        return [F.expr(count) for count in counts]

    def begin(self, rows: DataFrame, start: Start) -> Begun | None:
        """Look at the rows of each key."""
        return self._begin(rows, start) if self.alone else None

    def _begin(self, rows: DataFrame, start: Start) -> Begun:
        history = self._history(start, None)
        known = self._known(rows, history, ReviseState.model_validate(start.memory).n_waiting)
        return Begun(known, history.summed(known))

    def _history(self, start: Start, newest_us: int | None) -> Retained:
        moment = self._moment(start.memory, newest_us)
        return Retained(start.tables, start.background, self.places, self.pruned, moment)

    def _moment(self, memory: dict[str, Any], newest_us: int | None) -> Moment:
        before = ReviseState.model_validate(memory)
        return before.moment(self.app.shape, self.lateness_us, newest_us)

    def __call__(self, rows: DataFrame, turn: Turn) -> Outcome:
        """Answer what can be answered, and again what is due."""
        before = ReviseState.model_validate(turn.memory)
        standing = self._history(turn, None)
        rows, seen = self._seen(rows, turn, standing)
        if seen is None:
            return self._nothing_new(rows, before, standing.moment)
        history = self._history(turn, seen["newest_us"])
        begun = turn.begun if isinstance(turn.begun, Begun) else self._begin(rows, turn)
        known = begun.known
        n_lates = seen["late"] + before.n_waiting
        loan = turn.loan if self.alone else None
        recent = turn.background.begin(partial(history.keep_recent, known.on_time, loan))
        suspect_rows = self._doubt(begun, history, n_lates, before.n_doubted)
        keys = None if suspect_rows is None else history.found_out(suspect_rows)
        late_rows = None
        if n_lates:
            assert suspect_rows is not None, "a late row puts its key in doubt"
            assert keys is not None
            late_rows = LateRows(suspect_rows, history.moment, lambda: keys.n)
        present = known.present(None if late_rows is None else late_rows.recent)
        found = Findings(history.moment, seen, late_rows, keys)

        def keep() -> dict[str, Added]:
            return self._keep(history, known, present, found) | {RECENT: recent()}

        keeping = cache(partial(turn.background.begin, keep))
        answers = Emission(self.app, self._evaluation(turn), self.places, history, found)
        results = answers.all_told(present, keeping)()
        memory = cache(lambda: found.memory(before, {t: n() for t, n in keeping()().items()}))
        counted, statuses = observe(results, by_status())

        def by_result() -> dict[str, Any]:
            return NO_RESULTS if found.no_results else statuses.get

        def planned() -> None:
            keeping()()
            answers.remember(results, by_result())

        return Outcome(
            keyed(counted, self.app.naming(self.places.by)),
            memory=lambda: memory().model_dump(mode="json"),
            fates=lambda: found.fates,
            numbers=lambda: found.numbers(memory()) | by_result(),
            decisions=(decision(late_rows),),
            late=partial(too_late, rows, history.moment),
            dead=None if late_rows is None else lambda: self.places.without(late_rows.dead()),
            empty=found.no_results,
            planned=planned,
        )

    def _seen(
        self, rows: DataFrame, turn: Turn, history: Retained
    ) -> tuple[DataFrame, dict[str, Any] | None]:
        """The rows, at hand, and their numbers; None if there are no rows."""
        if self.alone:
            newest = [h.newest_us for h in turn.intake.heard.values() if h.newest_us is not None]
            return rows, turn.seen | {"newest_us": max(newest)} if newest else None
        if turn.before is not None and turn.before.empty:
            return rows, None
        rows = history.at_hand(self.places.together(rows), made=True)
        said = lateness(history.moment).items()
        counts = [f"count_if({holds}) AS {name}" for name, holds in said]
        numbers = measure(rows, [F.expr(n) for n in (*counts, f"max({EVENT_US}) AS newest_us")])
        return rows, None if numbers["newest_us"] is None else numbers

    def _known(self, rows: DataFrame, history: Retained, n_waited: int) -> VisibleRows:
        """The rows this batch may look at."""
        waited = history.waited() if n_waited else None
        return VisibleRows(history.moment, self.places.of(rows), history.recent(), waited)

    def _doubt(
        self, begun: Begun, history: Retained, n_lates: int, n_before: int | None
    ) -> SuspectRows | None:
        """All rows of the keys in doubt, at hand, the late ones judged; None if no key is.

        With late rows some are, so all is planned while they are looked for, as if no more were
        than in the batch before or than there are late rows.
        """
        if self.places.step is None and not n_lates:
            return None
        known = begun.known
        suspects = history.suspects(known, begun.keys)
        if n_lates and n_before is not None:
            n_keys = max(n_before, n_lates)
            rows = history.in_doubt(known, suspects, n_keys, older=True)
        else:
            found = history.counted(suspects)
            n_keys = found.keys
            if not n_keys:
                return None
            older = n_lates > 0 or found.fresh > 0
            rows = history.in_doubt(known, found.rows, n_keys, older)
        if n_lates:
            rows = history.at_hand(settled(rows, self.trigger, self.places, history.moment))
        else:
            rows = undisputed(rows)
        return SuspectRows(rows, n_keys)

    def _evaluation(self, turn: Turn) -> Evaluation:
        """How the app is evaluated in this batch."""
        by = self.places.by
        if not self.app.own_query:
            return partial(self.app.results, by=by)
        journeys, number = TimeShiftedQuery(self.app, by, turn.files, turn.batch_id), count()
        return lambda rows: journeys.results(rows, next(number))

    def _keep(
        self,
        history: Retained,
        known: VisibleRows,
        present: DataFrame,
        found: Findings,
    ) -> dict[str, Added]:
        """Begin to keep what later batches need of keys in doubt, beside the evaluation."""
        late_rows = found.late_rows
        contexts = history.keep_contexts(present, late_rows, found.keys)
        joined = history.keep_joined(late_rows)
        if late_rows is not None and (late_rows.n.waiting or known.waited is not None):
            history.keep_waiting(late_rows)
        if self.places.step is not None:
            late_holes = None
            if late_rows is not None and late_rows.n.behind:
                late_holes = new_holes(late_rows.due(), self.places, history.moment)
            history.note(found.keys, late_holes)
        history.begin_doubted(late_rows, found.keys)
        return {CONTEXTS: contexts, JOINED: joined}

    def _nothing_new(self, rows: DataFrame, before: ReviseState, moment: Moment) -> Outcome:
        """No row came: nothing to do, and no job to find that out."""
        fates = Fates(held=before.n_waiting)
        said = dict.fromkeys((*lateness(moment), "holes", "due"), 0)
        return Outcome(
            self.empty_results(rows),
            memory=lambda: before.model_dump(mode="json"),
            fates=lambda: fates,
            numbers=lambda: numbers_of(moment, before, said, fates) | NO_RESULTS,
            empty=True,
        )

    def empty_results(self, rows: DataFrame) -> DataFrame:
        """No results, with their columns."""
        answers = self.app.results(rows.where("false"), by=self.places.by)
        answers = told(answers, None, self.places, self._moment({}, None))
        return keyed(answers, self.app.naming(self.places.by))
