"""Revise the results of an app that runs, by a replica that travels in time (TinTiN, Alg. 1).

Rows on time go to the app; late ones wait until their trigger holds and their whole context has
come. Then the context is replayed to the replica, which like any app wants its rows in order: so
it is moved past everything replayed before, by a multiple of the step and more than the safety
distance, and its results are moved back. The app and its replica are never reset or looked into.

Where this differs from the listing: a row exactly `lateness` late is accepted (Def. 1); the last
results of a context come out only when something is replayed after it, so a sequence that is known
to give a result (A4) is replayed once more than `max_journeys` contexts await theirs; β and B are
kept by holes, because β alone cannot see one that is longer than a span.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from laxity.core.revise import Shape, TimeShift, merged
from laxity.core.triggers import Trigger, Waiting
from laxity.sim.retained import ON_TIME, TOO_LATE, Retained, Rows, Terms, rows_of
from laxity.sim.windows import App, Row, Running

FLUSH = "flush"  # the key of rows that only push results out


def once_whole(trigger: Trigger, shape: Shape) -> Trigger:
    """The same trigger, but not before the contexts of all rows that wait have come.

    Rows of one batch that are but hours late have contexts that become whole one after the other;
    asked so, a lazy trigger still replays them together.
    """

    def asked(waiting: Waiting) -> Any:
        return trigger(waiting) & (waiting.newest_us + shape.span_us <= waiting.frontier_us)

    return asked


class Replica:
    """A copy of the app that replays contexts, each at a time of its own.

    `flush` are the times and values of rows that give at least one result (A4).
    """

    def __init__(self, app: App, flush: Sequence[tuple[int, Any]]) -> None:
        self._shape, self._running = app.shape, Running(app)
        self._flush = [Row(ts_us, FLUSH, value) for ts_us, value in flush]
        self._newest_us: int | None = None
        self._journeys: deque[TimeShift] = deque()

    @property
    def n_journeys(self) -> int:
        """Contexts whose results may still come."""
        return len(self._journeys)

    def replay(self, rows: Sequence[Row], results: tuple[int, int]) -> list[Row]:
        """Replay rows in order; the awaited results that come out, of this context or earlier."""
        time_shift = self._time_shift(rows, results)
        self._journeys.append(time_shift)
        return self._fed(rows, time_shift)

    def flush(self) -> list[Row]:
        """Push out the results of all that was replayed."""
        return self._fed(self._flush, self._time_shift(self._flush, (0, 0)))

    def _time_shift(self, rows: Sequence[Row], results: tuple[int, int]) -> TimeShift:
        times_us = np.array([row.ts_us for row in rows], np.int64)
        time_shift = self._shape.time_shift(times_us, results, self._newest_us)
        self._newest_us = time_shift.last_us
        return time_shift

    def _fed(self, rows: Sequence[Row], time_shift: TimeShift) -> list[Row]:
        moved = [row._replace(ts_us=row.ts_us + time_shift.offset_us) for row in rows]
        return [back for row in moved for r in self._running.take(row) for back in self._back(r)]

    def _back(self, result: Row) -> list[Row]:
        """The result at its true time, if awaited. Results are sorted: what is older is stale."""
        while self._journeys and self._journeys[0].hi_us < result.ts_us:
            self._journeys.popleft()
        ts_us = self._journeys[0].back(result.ts_us) if self._journeys else None
        return [] if ts_us is None else [result._replace(ts_us=ts_us)]


class Reviser:
    """An app with its replica: every result at once, and again when a late row changes it."""

    def __init__(
        self,
        app: App,
        terms: Terms,
        trigger: Trigger,
        flush: Sequence[tuple[int, Any]],
        max_journeys: int = 0,
    ) -> None:
        self.history = Retained(app.shape, terms)
        self.replica = Replica(app, flush)
        self.discarded: list[Row] = []  # too late, or where no row is missing
        self._app, self._trigger, self._max_journeys = Running(app), trigger, max_journeys

    def take(self, row: Row, number: int | None = None) -> list[Row]:
        """Take in one row, with its sequence number if it has one; the results that follow."""
        one = rows_of([row.key], [row.ts_us], [row.value], None if number is None else [number])
        mark = self.history.arrive(one)[0]
        on_time = mark == ON_TIME
        if mark >= TOO_LATE:
            self.discarded.append(row)
        results = self._app.take(row) if on_time else []
        results += self._replayed(one.key if on_time else one.key[:0])
        if self.replica.n_journeys > self._max_journeys:
            results += self.replica.flush()
        self.history.forget()
        return results

    def _replayed(self, on_time: Any) -> list[Row]:
        """Replay the contexts of the waiting rows that are due and whose context has come."""
        history, shape = self.history, self.history.shape
        if not history.waiting.size:
            return []
        whole = history.waiting.ts_us + shape.span_us <= history.newest_us
        late = history.take_up(history.due(self._trigger, on_time) & whole)
        results: list[Row] = []
        intervals = merged(late.key, *shape.affected(late.ts_us))
        columns = intervals.key.tolist(), intervals.lo_us.tolist(), intervals.hi_us.tolist()
        for key, lo_us, hi_us in zip(*columns, strict=True):
            context = self._context(key, *shape.needed(lo_us, hi_us))
            results += self.replica.replay(context, (lo_us, hi_us))
        return results

    def _context(self, key: int, lo_us: int, hi_us: int) -> list[Row]:
        """The rows of a key in `(lo, hi)` in order, those that wait among them."""
        rows: Rows = self.history.rows.plus(self.history.waiting)
        rows = rows.take((rows.key == key) & (rows.ts_us > lo_us) & (rows.ts_us < hi_us))
        rows = rows.take(np.argsort(rows.ts_us, kind="stable"))
        return [Row(*row) for row in zip(rows.ts_us.tolist(), rows.key, rows.value, strict=True)]
