"""Revise on Spark: answer at once, and again what late rows change.

`laxity.core.revise` has the mathematics; here they become filters and joins. A batch without late
rows evaluates the app once, on its rows and those of the last span, and keeps the results between
the watermark before and the one after. Late rows that are due add the results they affect,
evaluated on slices of what is retained (`reevaluation.py`); which rows those are is told in
`retained.py`, and how a batch with rows goes in `revision.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark.sql import DataFrame

from laxity.core.ledger import Fates
from laxity.core.moment import Moment, ReviseState
from laxity.core.triggers import Trigger
from laxity.durations import Duration, duration_us, show_time, show_us
from laxity.errors import ConfigError
from laxity.spark.engine.draft import Draft
from laxity.spark.engine.planned import Needs, Planned, StageResult
from laxity.spark.engine.stage import BatchContext, Stage
from laxity.spark.revising.app import App
from laxity.spark.revising.column_pruning import PrunedColumns, columns_used_by
from laxity.spark.revising.emission import with_status
from laxity.spark.revising.findings import NO_RESULTS, numbers_of
from laxity.spark.revising.late_rows import checked_trigger
from laxity.spark.revising.places import Places, places_in
from laxity.spark.revising.retained import Retained
from laxity.spark.revising.revision import Revision
from laxity.spark.revising.visible import VisibleRows, lateness
from laxity.spark.rows.columns import EVENT_US
from laxity.spark.rows.results import keyed

S = TypeVar("S", bound=Draft)


@dataclass(frozen=True)
class Revise(Stage):
    """Answers at once; evaluates again what rows up to `lateness_us` late change."""

    app: App
    places: Places
    pruned: PrunedColumns
    lateness_us: int
    trigger: Trigger

    name = "revise"
    makes_rows = True

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

    def needs(self, state: dict[str, Any]) -> Needs:
        """How many rows are on time, late and too late; and a key's rows in one place.

        The app and all that is found out about late rows go by key.
        """
        classes = lateness(self._moment(ReviseState.model_validate(state), None)).items()
        counts = {name: f"count_if({holds})" for name, holds in classes}
        return Needs(counts | {"newest_us": f"max({EVENT_US})"}, key=self.places.by)

    def unfinished(self, state: dict[str, Any]) -> str:
        """The rows that wait, and the windows that are not over."""
        before = ReviseState.model_validate(state)
        if before.newest_us is None or before.newest_us == before.floor_us:
            return ""
        answered = show_time(self._moment(before, None).answered_us)
        waiting = f"{before.n_waiting:,} late rows held, " if before.n_waiting else ""
        return f"{waiting}results after {answered} not answered yet"

    def _moment(self, before: ReviseState, newest_us: int | None, drain: bool = False) -> Moment:
        return before.moment(self.app.shape, self.lateness_us, newest_us, drain=drain)

    def _retained(self, context: BatchContext, moment: Moment) -> Retained:
        return Retained(context.tables, context.background, self.places, self.pruned, moment)

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        """Answer what can be answered, and again what is due."""
        before = ReviseState.model_validate(context.state)
        if context.before is not None and context.before.empty and not context.drain:
            return self._nothing_new(rows, before)
        retained = self._retained(context, self._moment(before, None))
        visible = self._visible(rows, retained, before.n_waiting)
        keys = retained.summed(visible)  # begins while the rows are counted
        numbers = context.numbers
        moment = self._moment(before, numbers.get("newest_us"), context.drain)
        if not numbers["n_rows"] and not moment.drains:
            return self._nothing_new(rows, before)
        revision = Revision(
            app=self.app,
            places=self.places,
            trigger=self.trigger,
            context=context,
            before=before,
            retained=self._retained(context, moment),
            visible=visible,
            seen=dict.fromkeys(lateness(moment), 0) | numbers,
        )
        return revision.planned(rows, keys)

    def _visible(self, rows: DataFrame, retained: Retained, n_waited: int) -> VisibleRows:
        """The rows this batch may look at."""
        waited = retained.waited() if n_waited else None
        return VisibleRows(retained.moment, self.places.of(rows), retained.recent(), waited)

    def _nothing_new(self, rows: DataFrame, before: ReviseState) -> Planned:
        """No row came: nothing to do, and no job to find that out."""
        fates, moment = Fates(held=before.n_waiting), self._moment(before, None)
        counts = dict.fromkeys((*lateness(moment), "holes", "due"), 0)
        result = StageResult(
            before.model_dump(mode="json"),
            fates=fates,
            report=numbers_of(moment, before, counts, fates) | NO_RESULTS,
        )
        return Planned(self.empty_results(rows), lambda counts, before: result, empty=True)

    def empty_results(self, rows: DataFrame) -> DataFrame:
        """No results, with their columns."""
        answers = self.app.results(rows.where("false"), by=self.places.by)
        answers = with_status(answers, None, self.places, self._moment(ReviseState(), None))
        return keyed(answers, self.app.naming(self.places.by))


def revise(
    stream: S,
    app: App,
    *,
    by: str | Sequence[str],
    lateness: Duration,
    period: Duration | None = None,
    sequence: str | None = None,
    trigger: str | Trigger = "eager",
) -> S:
    """Answer at once, and again what late rows change, until a result is exact.

    A `period` or a `sequence` tells where rows are missing, so that only rows near those are kept;
    with neither all rows within the lateness are.

    Parameters
    ----------
    stream
        The stream itself.
    app
        What is evaluated.
    by
        The column or columns that name a key.
    lateness
        How late a row may be; later ones are rejected, with `late_by`.
    period
        How often each key sends a row.
    sequence
        Or the column that numbers a key's rows.
    trigger
        When late rows are replayed: `"eager"` (at once), `"lazy"` (with the key's next row on
        time) or a function of `Waiting`.

    Returns
    -------
    Stream
        Results with `_status` (`final`, `tentative`, `revised`, `retracted`) and `_revision`;
        `lx.latest` gives the newest of each.

    Raises
    ------
    ConfigError
        If the app does not fit the stream, a column is missing, or the stream is revised already.
    """
    if any(isinstance(stage, Revise) for stage in stream.stages):
        raise ConfigError("a stream can be revised once: results change, rows do not")
    keys = (by,) if isinstance(by, str) else tuple(by)
    places = places_in(stream.schema, keys, period, sequence)
    lateness_us = duration_us(lateness, "lateness")
    app.check(stream.empty, keys)
    used = columns_used_by(app, stream.empty, places.columns)
    stage = Revise(app, places, used, lateness_us, checked_trigger(trigger))
    return stream.then(stage, stage.empty_results(stream.empty).schema)
