"""Which results a late row changes, which rows those need, and how to replay them safely.

An app is a chain of windowed aggregates. A result carries the left edge of its last window; result
`r` depends on rows in `[r, r + span)`, where `span` is the sum of the window sizes. So a row at
`ts` affects results in `(ts − span, ts]`, and these need rows in `(ts − span, ts + span)`, the
row's *context* (TinTiN, Lemmas 1–5). Results at or before `watermark_us` are answered, those at or
before `final_us` never change again.

Intervals of results are `(lo, hi]`, intervals of rows `(lo, hi)`. Times may be numbers or arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from laxity.durations import Duration, duration_us, show_us
from laxity.errors import ConfigError

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Time = TypeVar("Time", int, Ints)


@dataclass(frozen=True)
class Shape:
    """What must be known of an app: its windows as (size, advance), and its period if it has one.

    `periodicity_us` is 1 for an app that treats all times alike, a day for one that looks at the
    hour of the day, and so on (A3).
    """

    windows: tuple[tuple[int, int], ...]
    periodicity_us: int = 1

    @classmethod
    def of(
        cls,
        windows: Sequence[tuple[Duration | int, Duration | int]],
        periodicity: Duration | int | None = None,
    ) -> "Shape":
        """A shape that is checked; whole numbers are microseconds.

        >>> Shape.of([("2h", "1h"), ("4h", "1h")], periodicity="1d").step_us == 24 * 3_600_000_000
        True
        >>> Shape.of([("1h", "2h")])
        Traceback (most recent call last):
        laxity.errors.ConfigError: a window's advance must be ≤ its size, got 2h > 1h
        """
        if not windows:
            raise ConfigError('an app needs at least one window, like windows=[("2h", "1h")]')
        sizes = tuple((_us(s, "a window's size"), _us(a, "a window's advance")) for s, a in windows)
        for size_us, advance_us in sizes:
            if advance_us > size_us:
                long, short = show_us(advance_us), show_us(size_us)
                raise ConfigError(f"a window's advance must be ≤ its size, got {long} > {short}")
        return cls(sizes, 1 if periodicity is None else _us(periodicity, "periodicity"))

    @property
    def span_us(self) -> int:
        """The sum of the window sizes; also the safety distance between contexts (Lemma 7)."""
        return sum(size_us for size_us, _ in self.windows)

    @property
    def step_us(self) -> int:
        """Times may be shifted by multiples of it: all windows, and the period, line up (Obs. 5).

        >>> Shape.of([(3, 2), (3, 1)]).step_us, Shape.of([(3, 2), (3, 3)], periodicity=7).step_us
        (2, 42)
        """
        return lcm(self.periodicity_us, *(advance_us for _, advance_us in self.windows))

    def affected(self, ts_us: Time) -> tuple[Time, Time]:
        """The results `(lo, hi]` that a row at `ts_us` can change (Lemmas 1 and 2).

        >>> Shape.of([(2, 1), (4, 1)]).affected(10)
        (4, 10)
        """
        return ts_us - self.span_us, ts_us

    def needed(self, lo_us: Time, hi_us: Time) -> tuple[Time, Time]:
        """The rows `(lo, hi)` that the results `(lo, hi]` depend on (Lemmas 3 and 4)."""
        return lo_us, hi_us + self.span_us

    def context(self, ts_us: Time) -> tuple[Time, Time]:
        """The rows `(lo, hi)` needed by all that a row at `ts_us` can change (Lemma 5).

        >>> Shape.of([(2, 1), (4, 1)]).context(10)
        (4, 16)
        """
        return self.needed(*self.affected(ts_us))

    def watermark_us(self, newest_us: Time) -> Time:
        """Results at or before it are answered once the newest event is there."""
        return newest_us - self.span_us

    def final_us(self, newest_us: Time, lateness_us: int) -> Time:
        """Results at or before it never change again: rows still accepted cannot touch them."""
        return newest_us - lateness_us - self.span_us

    def time_shift(
        self, ts_us: Ints, results: tuple[int, int], after_us: int | None
    ) -> "TimeShift":
        """How the rows of a context, at these times, travel past all that was replayed before.

        They are moved by the least multiple of the step that puts the first of them more than the
        safety distance after `after_us`, the newest time replayed (Lemma 8); nothing replayed yet,
        they stay. `results` are the affected ones.

        >>> Shape.of([(2, 1), (4, 1)]).time_shift(np.arange(10), (-2, 4), after_us=7).offset_us
        14
        """
        first_us, last_us = int(ts_us.min()), int(ts_us.max())
        n_steps = 0
        if after_us is not None:
            n_steps = (after_us + self.span_us - first_us) // self.step_us + 1
        offset_us = n_steps * self.step_us
        lo_us, hi_us = results
        return TimeShift(offset_us, lo_us + offset_us, hi_us + offset_us, last_us + offset_us)


@dataclass(frozen=True)
class TimeShift:
    """A context's way to another time: what was added, and where its results `(lo, hi]` appear.

    `last_us` is where its newest row went.
    """

    offset_us: int
    lo_us: int
    hi_us: int
    last_us: int

    def back(self, ts_us: int) -> int | None:
        """The true time of a result, or None if it is not one of those awaited (Obs. 1).

        >>> way = TimeShift(offset_us=14, lo_us=12, hi_us=18, last_us=23)
        >>> way.back(14), way.back(18), way.back(12)
        (0, 4, None)
        """
        return ts_us - self.offset_us if self.lo_us < ts_us <= self.hi_us else None


@dataclass(frozen=True)
class Intervals:
    """Intervals `(lo, hi]` of several keys, apart from each other and sorted by key and time."""

    key: Ints
    lo_us: Ints
    hi_us: Ints

    def hold(self, key: Ints, ts_us: Ints) -> Bools:
        """Which of these times lie in an interval of their key."""
        return self.meet(key, ts_us - 1, ts_us)

    def meet(self, key: Ints, lo_us: Ints, hi_us: Ints) -> Bools:
        """Which of these `(lo, hi]` have a time in common with an interval of their key."""
        at = last_before(self.key, self.lo_us, key, hi_us)
        met: Bools = at >= 0
        met[met] = self.hi_us[at[met]] > lo_us[met]
        return met


def merged(key: Ints, lo_us: Ints, hi_us: Ints) -> Intervals:
    """The same intervals `(lo, hi]` with those of a key joined that touch or overlap (Lemma 6).

    >>> joined = merged(np.array([1, 1, 1]), np.array([9, 0, 2]), np.array([9, 3, 5]))
    >>> joined.lo_us, joined.hi_us
    (array([0]), array([5]))
    """
    some = lo_us < hi_us
    key, lo_us, hi_us = key[some], lo_us[some], hi_us[some]
    order = np.lexsort((lo_us, key))
    return Intervals(*_joined(key[order], lo_us[order], hi_us[order]))


@njit(cache=True)
def _joined(key: Ints, lo: Ints, hi: Ints) -> tuple[Ints, Ints, Ints]:  # pragma: no cover
    n = 0
    for i in range(key.size):
        if n and key[i] == key[n - 1] and lo[i] <= hi[n - 1]:
            hi[n - 1] = max(hi[n - 1], hi[i])
        else:
            key[n], lo[n], hi[n] = key[i], lo[i], hi[i]
            n += 1
    return key[:n], lo[:n], hi[:n]


@njit(cache=True)
def last_before(keys: Ints, los: Ints, key: Ints, at: Ints) -> Ints:  # pragma: no cover
    """For each (key, at) the last place of that key in sorted (keys, los) with `lo < at`, or −1."""
    found = np.full(key.size, -1)
    for i in range(key.size):
        low, high = 0, keys.size
        while low < high:
            middle = (low + high) // 2
            if keys[middle] < key[i] or (keys[middle] == key[i] and los[middle] < at[i]):
                low = middle + 1
            else:
                high = middle
        if low and keys[low - 1] == key[i]:
            found[i] = low - 1
    return found


def _us(value: Duration | int, name: str) -> int:
    us = value if isinstance(value, int) else duration_us(value, name)
    if us <= 0:
        raise ConfigError(f"{name} must be > 0, got {show_us(us)}")
    return us
