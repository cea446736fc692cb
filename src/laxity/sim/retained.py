"""The rows a reviser keeps: the last span of every key, and the contexts of open holes (β and B).

Each row is judged when it comes: *on time* at or past the newest event before it, *late* up to
`lateness`, *too late* beyond, and a *stray* if it is late and no row is missing there. Late rows
wait until they are taken up. Without a step holes cannot be seen: then all rows are kept for
`lateness` and a span.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from laxity.core.holes import BEGINNING, Holes, by_number, by_time, no_holes, split
from laxity.core.holes import Rows as Points
from laxity.core.revise import Bools, Intervals, Ints, Shape, merged
from laxity.core.triggers import Trigger, Waiting
from laxity.errors import ConfigError

ON_TIME, LATE, TOO_LATE, STRAY = np.int8(0), np.int8(1), np.int8(2), np.int8(3)


@dataclass(frozen=True)
class Rows:
    """Rows as columns; `number` is the sequence number, if rows have one, `value` anything."""

    key: Ints
    ts_us: Ints
    number: Ints
    value: Any

    def take(self, which: Any) -> "Rows":
        """Some of the rows."""
        return Rows(*(column[which] for column in self.columns))

    def plus(self, others: "Rows") -> "Rows":
        """These rows, then the others."""
        pairs = zip(self.columns, others.columns, strict=True)
        return Rows(*(np.concatenate(pair) for pair in pairs))

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns, in order."""
        return self.key, self.ts_us, self.number, self.value

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.key.size)


def rows_of(key: Any, ts_us: Any, value: Any, number: Any = None) -> Rows:
    """Rows of any sequences; values become Python's own, or stay what they are."""
    times = np.array(ts_us, np.int64)
    numbers = times if number is None else np.array(number, np.int64)
    values = value.tolist() if isinstance(value, np.ndarray) else value
    return Rows(np.array(key, np.int64), times, numbers, np.fromiter(values, object))


def no_rows() -> Rows:
    """Nothing, as columns."""
    return rows_of([], [], [])


@dataclass(frozen=True)
class Terms:
    """How late rows may be, and how a missing one is seen: by period or by sequence number."""

    lateness_us: int
    period_us: int | None = None
    numbered: bool = False

    def __post_init__(self) -> None:
        if self.lateness_us < 0:
            raise ConfigError(f"lateness_us must be ≥ 0, got {self.lateness_us}")
        if self.period_us is not None and self.numbered:
            raise ConfigError("missing rows are seen by period_us or by number, not by both")

    @property
    def step(self) -> int | None:
        """How far neighbours are apart in the coordinate; None if holes cannot be seen."""
        return 1 if self.numbered else self.period_us

    def points(self, rows: Rows) -> Points:
        """The rows as holes see them."""
        if self.numbered:
            return by_number(rows.key, rows.ts_us, rows.number)
        return by_time(rows.key, rows.ts_us)


class Retained:
    """What is kept of the past of all keys."""

    def __init__(self, shape: Shape, terms: Terms) -> None:
        self.shape, self.terms = shape, terms
        self.newest_us = self.floor_us = BEGINNING
        self.ended = False  # the input is: whatever waits is due, and all results are certain
        self.rows, self.waiting, self.holes = no_rows(), no_rows(), no_holes()

    @property
    def oldest_us(self) -> int:
        """Rows from then on are still accepted."""
        return max(self.newest_us - self.terms.lateness_us, self.floor_us)

    @property
    def watermark_us(self) -> int:
        """Results up to there are answered, now that these rows are here."""
        if self.ended:
            return self.newest_us
        return max(self.shape.watermark_us(self.newest_us), self.floor_us - 1)

    @property
    def final_us(self) -> int:
        """Results up to there never change again."""
        final_us = self.shape.final_us(self.newest_us, self.terms.lateness_us)
        return max(final_us, self.floor_us - 1)

    @property
    def n_held(self) -> int:
        """Rows in memory."""
        return self.rows.size + self.waiting.size

    def judge(self, rows: Rows) -> np.ndarray[Any, np.dtype[np.int8]]:
        """Which of the rows are on time, late, too late or strays, by what came before them."""
        marks = np.where(rows.ts_us < self.newest_us, LATE, ON_TIME)
        marks[rows.ts_us < self.oldest_us] = TOO_LATE
        if self.terms.step is not None:
            known = np.isin(rows.key, self.holes.key)
            in_none = self.holes.of(self.terms.points(rows)) < 0
            marks[(marks == LATE) & known & in_none] = STRAY
        return marks

    def arrive(self, rows: Rows) -> np.ndarray[Any, np.dtype[np.int8]]:
        """Take rows in: those on time are kept, late ones wait. Time moves on."""
        marks = self.judge(rows)
        on_time = rows.take(marks == ON_TIME)
        self.waiting = self.waiting.plus(rows.take(marks == LATE))
        self._keep(on_time)
        self.newest_us = max(self.newest_us, int(on_time.ts_us.max(initial=BEGINNING)))
        return marks

    def due(self, trigger: Trigger, on_time: Ints) -> Bools:
        """Which waiting rows are to be replayed: the trigger holds, or their time has run out.

        `on_time` are the keys of the rows that came on time.
        """
        keys, place = np.unique(self.waiting.key, return_inverse=True)
        n_late = np.bincount(place, minlength=keys.size)
        ends = np.cumsum(n_late)
        times_us = self.waiting.ts_us[np.lexsort((self.waiting.ts_us, place))]
        known = on_time[np.isin(on_time, keys)]
        asked = Waiting(
            n_late=n_late,
            n_on_time=np.bincount(np.searchsorted(keys, known), minlength=keys.size),
            oldest_us=times_us[ends - n_late],
            newest_us=times_us[ends - 1],
            frontier_us=self.newest_us,
        )
        due: Bools = np.broadcast_to(trigger(asked), keys.shape)[place]
        return due | (self.waiting.ts_us <= self.oldest_us) | self.ended

    def take_up(self, which: Bools) -> Rows:
        """Let some of the waiting rows join the others; which they were."""
        rows = self.waiting.take(which)
        self.waiting = self.waiting.take(~which)
        self._keep(rows)
        return rows

    def _keep(self, rows: Rows) -> None:
        self.rows = self.rows.plus(rows)
        if self.terms.step is not None:
            self.holes = split(self.holes, self.terms.points(rows), self.terms.step)

    def forget(self) -> None:
        """Let go of the rows that nothing still to come can need, and of holes that are closed."""
        if self.ended:
            self.rows, self.waiting, self.holes = no_rows(), no_rows(), no_holes()
            self.newest_us = self.floor_us = self.newest_us + 1
            self.ended = False
            return
        span_us = self.shape.span_us
        if self.terms.step is None:
            needed = self.rows.ts_us > self.oldest_us - span_us
        else:
            self.holes = self.holes.open(span_us, self.oldest_us)
            contexts = self.holes.contexts(span_us, self.oldest_us)
            needed = contexts.hold(self.rows.key, self.rows.ts_us)
        needed |= self._awaited().hold(self.rows.key, self.rows.ts_us)
        self.rows = self.rows.take(
            needed | (self.rows.ts_us > self.shape.watermark_us(self.newest_us))
        )

    def _awaited(self) -> Intervals:
        """The contexts of rows that wait."""
        lo_us, hi_us = self.shape.context(self.waiting.ts_us)
        return merged(self.waiting.key, lo_us, hi_us - 1)

    def certain(self, key: Ints, result_us: Ints) -> Bools:
        """Which results no row can change that waits or may still come."""
        if self.ended or self.terms.step is None:
            return np.full(key.size, self.ended)
        holes = self.holes.open(self.shape.span_us, self.oldest_us).missing()
        waiting = merged(self.waiting.key, self.waiting.ts_us - 1, self.waiting.ts_us)
        needed = key, result_us - 1, result_us + self.shape.span_us - 1
        return ~(holes.meet(*needed) | waiting.meet(*needed))

    def snapshot(self) -> dict[str, Any]:
        """All of it as JSON values; `restore` takes it back."""
        return {
            "newest_us": self.newest_us,
            "floor_us": self.floor_us,
            "rows": [column.tolist() for column in self.rows.columns],
            "waiting": [column.tolist() for column in self.waiting.columns],
            "holes": [column.tolist() for column in self.holes.columns],
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self.newest_us, self.floor_us = snapshot["newest_us"], snapshot["floor_us"]
        self.rows, self.waiting = _read(snapshot["rows"]), _read(snapshot["waiting"])
        self.holes = Holes(*(np.array(column, np.int64) for column in snapshot["holes"]))


def _read(columns: list[list[Any]]) -> Rows:
    key, ts_us, number, value = columns
    return rows_of(key, ts_us, value, number)
