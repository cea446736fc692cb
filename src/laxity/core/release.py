"""Read a whole batch from a merge: which rows are released, how, and in what order.

The frontier and the position come from `laxity.core.merge`; here they meet the rows, as columns.
Rows of one source mostly come in order, so they are not sorted but merged.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from laxity.core.merge import FIRST_US, Key

READY, SLACK, LATE, HELD = np.int8(0), np.int8(1), np.int8(2), np.int8(3)

Ints = NDArray[np.int64]
Marks = NDArray[np.int8]


@dataclass(frozen=True)
class Rows:
    """Rows as columns: their keys, and `ref`, whatever tells the caller which rows they are."""

    event_us: Ints
    rank: Ints
    seq: Ints
    ref: Ints

    def take(self, which: NDArray[np.generic]) -> "Rows":
        """Some of the rows."""
        return Rows(self.event_us[which], self.rank[which], self.seq[which], self.ref[which])

    def plus(self, others: "Rows") -> "Rows":
        """These rows, then the others."""
        return Rows(
            np.concatenate([self.event_us, others.event_us]),
            np.concatenate([self.rank, others.rank]),
            np.concatenate([self.seq, others.seq]),
            np.concatenate([self.ref, others.ref]),
        )

    def key(self, at: int) -> Key:
        """The place of one row in the total order."""
        return int(self.event_us[at]), int(self.rank[at]), int(self.seq[at])


def no_rows() -> Rows:
    """Nothing, as columns."""
    none = np.empty(0, np.int64)
    return Rows(none, none, none, none)


@dataclass(frozen=True)
class Released:
    """One reading: the rows in the order they are read, their marks, and what waits on."""

    rows: Rows
    marks: Marks
    held: Rows
    position: Key | None


def release(
    rows: Rows, frontier_us: int | None, merge_us: int | None, position: Key | None
) -> Released:
    """Read all that may be read: late rows first, then in total order.

    >>> rows = Rows(*(np.array(column) for column in ([4, 9, 5, 2], [0, 0, 1, 1], [0, 1, 0, 1],
    ...                                                [0, 1, 2, 3])))
    >>> read = release(rows, frontier_us=5, merge_us=4, position=(3, 0, 0))
    >>> read.rows.event_us, read.marks, read.held.event_us
    (array([2, 4, 5]), array([2, 0, 1], dtype=int8), array([9]))
    """
    limits_us = (_or_first(frontier_us), _or_first(merge_us))
    marks = _marks(rows.event_us, rows.rank, rows.seq, limits_us, position or (FIRST_US, 0, 0))
    order = _in_order(rows, marks)
    read = rows.take(order)
    in_order = np.flatnonzero(marks[order] != LATE)
    if in_order.size:
        position = read.key(int(in_order[-1]))
    return Released(read, marks[order], rows.take(np.flatnonzero(marks == HELD)), position)


def _or_first(us: int | None) -> int:
    return FIRST_US if us is None else us


@njit(cache=True)
def _marks(
    event_us: Ints, rank: Ints, seq: Ints, limits_us: tuple[int, int], position: Key
) -> Marks:  # pragma: no cover
    frontier_us, merge_us = limits_us
    at, by, nr = position
    marks = np.empty(event_us.size, np.int8)
    for n in range(event_us.size):
        us = event_us[n]
        if us < at or (us == at and (rank[n] < by or (rank[n] == by and seq[n] < nr))):
            marks[n] = LATE
        elif us > frontier_us:
            marks[n] = HELD
        else:
            marks[n] = READY if us <= merge_us else SLACK
    return marks


def _in_order(rows: Rows, marks: Marks) -> Ints:
    """The released rows' indices as they are read."""
    n_sources = int(rows.rank.max()) + 1 if rows.rank.size else 0
    runs, bounds = _runs(rows.rank, marks, n_sources)
    for n in range(2 * n_sources):
        run = runs[bounds[n] : bounds[n + 1]]
        if not _sorted(rows.event_us, rows.seq, run):
            run[:] = run[np.lexsort((rows.seq[run], rows.event_us[run]))]
    late = _merged(rows.event_us, runs, bounds[: n_sources + 1])
    in_order = _merged(rows.event_us, runs, bounds[n_sources:])
    return np.concatenate([late, in_order])


@njit(cache=True)
def _runs(rank: Ints, marks: Marks, n_sources: int) -> tuple[Ints, Ints]:  # pragma: no cover
    """The released rows' indices by lateness and source, as they came; and where each begins."""
    bounds = np.zeros(2 * n_sources + 1, np.int64)
    for n in range(rank.size):
        if marks[n] != HELD:
            bounds[rank[n] + (0 if marks[n] == LATE else n_sources) + 1] += 1
    bounds = np.cumsum(bounds)
    at = bounds.copy()
    runs = np.empty(bounds[-1], np.int64)
    for n in range(rank.size):
        if marks[n] != HELD:
            run = rank[n] + (0 if marks[n] == LATE else n_sources)
            runs[at[run]] = n
            at[run] += 1
    return runs, bounds


@njit(cache=True)
def _sorted(event_us: Ints, seq: Ints, run: Ints) -> bool:  # pragma: no cover
    for n in range(1, run.size):
        a, b = run[n - 1], run[n]
        if event_us[a] > event_us[b] or (event_us[a] == event_us[b] and seq[a] > seq[b]):
            return False
    return True


@njit(cache=True)
def _merged(event_us: Ints, runs: Ints, bounds: Ints) -> Ints:  # pragma: no cover
    """Sorted runs as one; of equal events the run of the smaller rank goes first."""
    at = bounds[:-1].copy()
    merged = np.empty(bounds[-1] - bounds[0], np.int64)
    for n in range(merged.size):
        best, best_us = -1, 0
        for run in range(at.size):
            if at[run] < bounds[run + 1]:
                us = event_us[runs[at[run]]]
                if best < 0 or us < best_us:
                    best, best_us = run, us
        merged[n] = runs[at[best]]
        at[best] += 1
    return merged
