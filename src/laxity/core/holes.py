"""Where rows of a key are missing that may still come.

Rows of a key are counted by a coordinate: their event time (one row every `step`) or a sequence
number (step 1). Between two neighbours more than a step apart is a *hole* (TinTiN, A1). What lies
before a key's first row and after its last one may still come too: a key nobody knows is one hole
from beginning to end, and every row splits the hole it falls into. A hole is open until the bound
on lateness has passed; only rows within a span of an open hole need to be kept. A late row that
falls into no open hole cannot be told from a mistake, and its context may be gone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laxity.core.revise import Intervals, Ints, last_before, merged

BEGINNING, END = -(2**62), 2**62  # far from every time and number, and sums stay in range


@dataclass(frozen=True)
class Rows:
    """Rows as a hole sees them: key, coordinate, and the times next to them.

    A row missing before this one is at `before_us` or earlier, one missing after it at `after_us`
    or later.
    """

    key: Ints
    at: Ints
    before_us: Ints
    after_us: Ints

    def take(self, which: NDArray[np.generic]) -> "Rows":
        """Some of the rows."""
        return Rows(self.key[which], self.at[which], self.before_us[which], self.after_us[which])


def by_time(key: Ints, ts_us: Ints) -> Rows:
    """Rows counted by their event time."""
    return Rows(key, ts_us, ts_us - 1, ts_us + 1)


def by_number(key: Ints, ts_us: Ints, number: Ints) -> Rows:
    """Rows counted by a sequence number; several may have the same time."""
    return Rows(key, number, ts_us, ts_us)


@dataclass(frozen=True)
class Holes:
    """Holes of several keys, sorted by key and place.

    Missing are coordinates in `(lo, hi)`, at times in `[first_us, last_us]`.
    """

    key: Ints
    lo: Ints
    hi: Ints
    first_us: Ints
    last_us: Ints

    def take(self, which: NDArray[np.generic]) -> "Holes":
        """Some of the holes."""
        return Holes(*(column[which] for column in self.columns))

    @property
    def columns(self) -> tuple[Ints, ...]:
        """The columns, in order."""
        return self.key, self.lo, self.hi, self.first_us, self.last_us

    def of(self, rows: Rows) -> Ints:
        """For each row the place of the hole it falls into, or −1."""
        place = last_before(self.key, self.lo, rows.key, rows.at)
        some = place >= 0
        place[some] = np.where(rows.at[some] < self.hi[place[some]], place[some], -1)
        return place

    def missing(self) -> Intervals:
        """The times at which rows may be missing."""
        return merged(self.key, self.first_us - 1, self.last_us)

    def contexts(self, span_us: int, oldest_us: int) -> Intervals:
        """The times of rows to keep: within a span of what may still come, from `oldest_us` on."""
        first_us = np.maximum(self.first_us, oldest_us)
        return merged(self.key, first_us - span_us, self.last_us + span_us - 1)

    def open(self, span_us: int, oldest_us: int) -> "Holes":
        """Those into which a row at `oldest_us` or later may still fall.

        A key whose last row is more than a span before that is forgotten: it may begin anew.
        """
        dead = (self.hi == END) & (self.first_us <= oldest_us - span_us)
        return self.take((self.last_us >= oldest_us) & ~dead)


def no_holes() -> Holes:
    """No key is known."""
    return Holes(*np.empty((5, 0), np.int64))


def split(holes: Holes, rows: Rows, step: int) -> Holes:
    """The holes that are left when these rows have come, on time or late.

    >>> hours = lambda *ts: by_time(np.zeros(len(ts), np.int64), np.array(ts))
    >>> holes = split(no_holes(), hours(0, 1, 4, 5), step=1)
    >>> holes.lo[1:], holes.hi[:-1]
    (array([1, 5]), array([0, 4]))
    >>> holes = split(holes, hours(3), step=1)
    >>> holes.lo[1:], holes.hi[:-1]
    (array([1, 5]), array([0, 3]))
    """
    holes = _with_new_keys(holes, np.unique(rows.key))
    hit = holes.of(rows)
    rows, hit = rows.take(hit >= 0), hit[hit >= 0]
    # Points from left to right: each hole's beginning, then the rows in it.
    place = np.concatenate([np.arange(holes.key.size), hit])
    at = np.concatenate([holes.lo, rows.at])
    order = np.lexsort((at, place))
    place, lo = place[order], at[order]
    first_us = np.concatenate([holes.first_us, rows.after_us])[order]
    end = np.append(place[1:] != place[:-1], np.True_)  # then comes the hole's own end
    hi = np.where(end, holes.hi[place], np.roll(lo, -1))
    before_us = np.concatenate([holes.last_us, rows.before_us])[order]
    last_us = np.where(end, holes.last_us[place], np.roll(before_us, -1))
    parts = Holes(holes.key[place], lo, hi, first_us, last_us)
    return parts.take(hi - lo > step)


def _with_new_keys(holes: Holes, keys: Ints) -> Holes:
    new = np.setdiff1d(keys, holes.key)
    always = [np.full(new.size, time) for time in (BEGINNING, END, BEGINNING, END)]
    both = [np.concatenate(parts) for parts in zip(holes.columns, (new, *always), strict=True)]
    return Holes(*both).take(np.lexsort((both[1], both[0])))
