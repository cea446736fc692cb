from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from laxity.core.holes import BEGINNING, END, Holes, Rows, by_number, by_time, no_holes, split

PLACES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), max_size=25, unique=True)


def rows_at(places: Any) -> Rows:
    key, ts_us = np.array(places, np.int64).reshape(-1, 2).T
    return by_time(key, ts_us)


def gaps(places: Any, step: int) -> list[tuple[int, int, int]]:
    """Naive: neighbours more than a step apart, and what is before the first and after the last."""
    found = []
    for key in sorted({key for key, _ in places}):
        times = [BEGINNING, *sorted(ts for k, ts in places if k == key), END]
        found += [(key, a, b) for a, b in pairwise(times) if b - a > step]
    return found


def as_list(holes: Holes) -> list[tuple[int, int, int]]:
    return list(zip(holes.key.tolist(), holes.lo.tolist(), holes.hi.tolist(), strict=True))


@given(PLACES, st.integers(1, 4))
def test_same_as_oracle_in_any_parts(places: Any, n_parts: int) -> None:
    """However the rows come, none is a surprise, and the holes are those of all of them."""
    holes = no_holes()
    for part in range(n_parts):
        rows = rows_at(places[part::n_parts])
        assert ((holes.of(rows) >= 0) | ~np.isin(rows.key, holes.key)).all()
        holes = split(holes, rows, step=1)
    assert as_list(holes) == gaps(places, step=1)


@given(PLACES, st.integers(1, 4))
def test_same_as_oracle_which_hole_a_row_falls_into(places: Any, step: int) -> None:
    holes = split(no_holes(), rows_at(places), step)
    assert as_list(holes) == gaps(places, step)
    asked = [(key, ts) for key in range(4) for ts in range(-3, 25)]
    want = [
        next((n for n, (k, a, b) in enumerate(as_list(holes)) if k == key and a < ts < b), -1)
        for key, ts in asked
    ]
    assert holes.of(rows_at(asked)).tolist() == want


@given(PLACES, st.integers(1, 4), st.integers(0, 6), st.integers(-5, 25))
def test_rows_in_reach_of_a_row_that_may_come_are_kept(
    places: Any, step: int, span_us: int, oldest_us: int
) -> None:
    """Every row less than a span from a time that is missing and not too old, and no other."""
    holes = split(no_holes(), rows_at(places), step).open(span_us, oldest_us)
    kept = holes.contexts(span_us, oldest_us)
    for key, ts in places:
        may_come = [
            t
            for t in range(oldest_us, 40)
            if any(k == key and a < t < b for k, a, b in gaps(places, step))
        ]
        near = any(abs(ts - t) < span_us for t in may_come)
        held = kept.hold(np.array([key]), np.array([ts])).tolist()
        assert held == [near]


def test_rows_by_number_are_missing_at_times_of_their_neighbours() -> None:
    zero = np.zeros(3, np.int64)
    holes = split(no_holes(), by_number(zero, np.array([5, 9, 9]), np.array([1, 4, 6])), step=1)
    assert holes.first_us[1:].tolist() == [5, 9, 9]
    assert holes.last_us[:-1].tolist() == [5, 9, 9]
    assert holes.open(span_us=2, oldest_us=9).lo.tolist() == [1, 4, 6]
    assert holes.open(span_us=2, oldest_us=10).lo.tolist() == [6]
    assert holes.open(span_us=2, oldest_us=11).lo.tolist() == []


def test_a_hole_is_closed_when_all_that_is_missing_in_it_is_too_late() -> None:
    holes = split(no_holes(), rows_at([(0, 2), (0, 6), (0, 7)]), step=1)
    assert holes.open(3, oldest_us=5).lo.tolist() == [2, 7]
    assert holes.open(3, oldest_us=6).lo.tolist() == [7]
