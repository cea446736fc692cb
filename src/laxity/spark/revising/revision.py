"""A revise in one micro-batch that has rows, or ends the input.

What is on the way to the results is planned first, and what is kept for later batches beside their
writing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import count

from pyspark.sql import DataFrame

from laxity.core.moment import CONTEXTS, JOINED, RECENT, ReviseState
from laxity.core.triggers import Trigger
from laxity.spark.engine.planned import Counts, Planned, StageResult
from laxity.spark.engine.stage import BatchContext
from laxity.spark.revising.app import App, Evaluation
from laxity.spark.revising.emission import Emission
from laxity.spark.revising.findings import NO_RESULTS, Findings, by_status
from laxity.spark.revising.late_rows import LateRows, decision, new_holes, settled, undisputed
from laxity.spark.revising.places import Places
from laxity.spark.revising.retained import Added, Retained
from laxity.spark.revising.time_shift import TimeShiftedQuery
from laxity.spark.revising.visible import SuspectRows, VisibleRows, too_late
from laxity.spark.rows.measure import Riding
from laxity.spark.rows.results import keyed


@dataclass(frozen=True)
class Revision:
    """The rows a batch may look at, how many of them are late (`seen`), and what was before."""

    app: App
    places: Places
    trigger: Trigger
    context: BatchContext
    before: ReviseState
    retained: Retained
    visible: VisibleRows
    seen: Mapping[str, int]

    def planned(self, rows: DataFrame, keys: DataFrame | None) -> Planned:
        """How the batch goes; `keys` is what the rows say of each key together."""
        retained, visible, background = self.retained, self.visible, self.context.background
        keep_recent = partial(retained.keep_recent, visible.on_time, self.context.loan)
        recent = background.start(keep_recent)
        findings = self._findings(keys)
        late_rows = findings.late_rows
        present = visible.present(None if late_rows is None else late_rows.recent)

        def keep() -> dict[str, Added]:
            return self._keep(present, findings) | {RECENT: recent()}

        @cache
        def keeping() -> Callable[[], dict[str, Added]]:
            return background.start(keep)

        emission = Emission(self.app, self._evaluation(), self.places, retained, findings)
        results, statuses = emission.all_results(present, keeping)(), Riding()
        if not findings.no_results:
            results = statuses.on(results, by_status())

        def finish(counts: Counts, before: StageResult | None) -> StageResult:
            by_result = NO_RESULTS | counts["results"]
            emission.remember(results, by_result)
            added = {table: n_rows() for table, n_rows in keeping()().items()}
            state = findings.state(self.before, added)
            return StageResult(
                state.model_dump(mode="json"),
                fates=findings.fates,
                report=findings.numbers(state) | by_result,
                decisions=(decision(late_rows),),
                late=partial(too_late, rows, retained.moment),
                dead=None if late_rows is None else partial(self._unexpected, late_rows),
            )

        return Planned(
            keyed(results, self.app.naming(self.places.by)),
            finish,
            {"results": statuses},
            jobs=(keeping(),),
            empty=findings.no_results,
        )

    def _unexpected(self, late_rows: LateRows) -> DataFrame:
        return self.places.without(late_rows.dead())

    def _findings(self, keys: DataFrame | None) -> Findings:
        """Which keys are suspect, and what is found out about their late and missing rows."""
        retained, n_late = self.retained, self.seen["late"] + self.before.n_waiting
        suspects = self._suspects(keys, n_late)
        found = None if suspects is None else retained.found_out(suspects)
        late_rows = None
        if n_late:
            assert suspects is not None, "a late row makes its key suspect"
            assert found is not None
            late_rows = LateRows(suspects, retained.moment, lambda: found.n)
        return Findings(retained.moment, self.seen, late_rows, found)

    def _suspects(self, keys: DataFrame | None, n_late: int) -> SuspectRows | None:
        """All rows of the suspect keys, at hand, the late ones judged; None if there are none.

        With late rows there are some, so all is planned while they are looked for, as if no more
        were than in the batch before or than there are late rows.
        """
        if self.places.step is None and not n_late:
            return None
        retained, visible, n_before = self.retained, self.visible, self.before.n_doubted
        suspects = retained.suspects(visible, keys)
        if n_late and n_before is not None:
            n_keys = max(n_before, n_late)
            rows = retained.all_rows_of(visible, suspects, n_keys, older=True)
        else:
            found = retained.counted(suspects)
            n_keys = found.keys
            if not n_keys:
                return None
            rows = retained.all_rows_of(visible, found.rows, n_keys, n_late > 0 or found.fresh > 0)
        if n_late:
            rows = settled(rows, self.trigger, self.places, retained.moment)
            return SuspectRows(retained.at_hand(rows), n_keys)
        return SuspectRows(undisputed(rows), n_keys)

    def _evaluation(self) -> Evaluation:
        """How the app is evaluated in this batch."""
        by, context = self.places.by, self.context
        if not self.app.own_query:
            return partial(self.app.results, by=by)
        query, number = TimeShiftedQuery(self.app, by, context.files, context.batch_id), count()
        return lambda rows: query.results(rows, next(number))

    def _keep(self, present: DataFrame, findings: Findings) -> dict[str, Added]:
        """Begin to keep what later batches need of suspect keys, beside the evaluation."""
        retained, late_rows, keys = self.retained, findings.late_rows, findings.keys
        contexts = retained.keep_contexts(present, late_rows, keys)
        joined = retained.keep_joined(late_rows)
        if late_rows is not None and (late_rows.n.waiting or self.visible.waited is not None):
            retained.keep_waiting(late_rows)
        if self.places.step is not None:
            retained.note(keys, self._late_holes(late_rows))
        retained.begin_suspects(late_rows, keys)
        return {CONTEXTS: contexts, JOINED: joined}

    def _late_holes(self, late_rows: LateRows | None) -> DataFrame | None:
        """The holes before late rows that are now the last of their key."""
        if late_rows is None or not late_rows.n.behind:
            return None
        return new_holes(late_rows.due(), self.places, self.retained.moment)
