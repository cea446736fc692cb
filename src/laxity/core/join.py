"""Join two sources of a merged stream in a sliding window, as the seed's operator does.

The operator takes rows as the merge reads them and keeps each for `within` of the newest time it
has read (Slack-ScaleGate, §3, Fig. 6). A row is compared with the other side's rows that are still
kept and at most `within` away. So reading a slack row moves the window, and a late row meets only
what is still in it; in order, every two rows at most `within` apart meet exactly once. The pairs
that an in-order run compares and this one does not are *missed*.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from laxity.core.stage_report import StageReport, shown

Ints = NDArray[np.int64]

LEFT, RIGHT = 0, 1


class JoinReport(StageReport):
    """What a join tells of a batch."""

    compared: int = shown("pairs", label="compared", kind="counter", about="pairs compared")
    missed: int = shown(
        "pairs",
        label="missed",
        kind="counter",
        column=True,
        about="pairs that only an in-order run compares",
    )
    exact: bool = shown(
        "", label="exact", kind="flag", about="no late row was too old to tell what it missed"
    )


@dataclass(frozen=True)
class Pairs:
    """The pairs that were compared, as places in the read order, and how many there should be."""

    left: Ints
    right: Ints
    n_in_order: int

    @property
    def n_compared(self) -> int:
        """How many pairs were compared."""
        return int(self.left.size)

    @property
    def n_missed(self) -> int:
        """How many more an in-order run would have compared."""
        return self.n_in_order - self.n_compared


def joined(event_us: Ints, side: Ints, on: Ints, within_us: int) -> Pairs:
    """The pairs compared when rows are read in the given order; `on` is the join key as a number.

    >>> events, sides = np.array([1, 9, 4]), np.array([LEFT, LEFT, RIGHT])  # 4 is late
    >>> pairs = joined(events, sides, on=np.zeros(3, np.int64), within_us=5)
    >>> pairs.left, pairs.right, pairs.n_missed
    (array([1]), array([2]), 1)
    """
    by_key = np.argsort(on, kind="stable")
    newest_us = np.maximum.accumulate(event_us) if event_us.size else event_us
    first, second, n_in_order = _pairs(event_us, side, on, by_key, newest_us, within_us)
    swap = side[first] == RIGHT
    return Pairs(np.where(swap, second, first), np.where(swap, first, second), int(n_in_order))


@njit(cache=True)
def _pairs(  # noqa: PLR0917
    event_us: Ints, side: Ints, on: Ints, by_key: Ints, newest_us: Ints, within_us: int
) -> tuple[Ints, Ints, int]:  # pragma: no cover
    kept = np.empty((2, event_us.size), np.int64)  # the window of each side, one key at a time
    n_kept = np.zeros(2, np.int64)
    first = np.empty(max(16, 2 * event_us.size), np.int64)
    second = np.empty_like(first)
    n_pairs, n_in_order, start = 0, 0, 0
    for n in range(by_key.size):
        row = by_key[n]
        if n and on[row] != on[by_key[n - 1]]:
            n_in_order += _in_order(event_us, side, by_key[start:n], within_us)
            n_kept[:] = 0
            start = n
        other = 1 - side[row]
        left_us = newest_us[row] - within_us
        still = 0
        for k in range(n_kept[other]):
            a = kept[other, k]
            if event_us[a] < left_us:
                continue  # out of the window, for good
            kept[other, still] = a
            still += 1
            if abs(event_us[a] - event_us[row]) <= within_us:
                if n_pairs == first.size:
                    first = np.concatenate((first, np.empty_like(first)))
                    second = np.concatenate((second, np.empty_like(second)))
                first[n_pairs], second[n_pairs] = a, row
                n_pairs += 1
        n_kept[other] = still
        if event_us[row] >= left_us:
            kept[side[row], n_kept[side[row]]] = row
            n_kept[side[row]] += 1
    n_in_order += _in_order(event_us, side, by_key[start:], within_us)
    return first[:n_pairs], second[:n_pairs], n_in_order


@njit(cache=True)
def _in_order(event_us: Ints, side: Ints, rows: Ints, within_us: int) -> int:  # pragma: no cover
    """How many pairs of two sides are at most `within_us` apart."""
    left = np.sort(event_us[rows[side[rows] == LEFT]])
    right = np.sort(event_us[rows[side[rows] == RIGHT]])
    low = np.searchsorted(right, left - within_us, side="left")
    high = np.searchsorted(right, left + within_us, side="right")
    return int((high - low).sum())
