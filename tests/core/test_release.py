"""Reading a whole batch: which rows, how marked, in what order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.core.release import HELD, LATE, READY, SLACK, no_rows, release
from oracles import read_once
from strategies import ANY_SOURCES, MAX_US, arrivals
from support.merging import MARKS, columns, listed

TIMES = st.one_of(st.none(), st.integers(-2, MAX_US + 2))
POSITIONS = st.one_of(
    st.none(), st.tuples(st.integers(-2, MAX_US), st.integers(0, 3), st.integers(0, 8))
)


@given(st.data(), TIMES, TIMES)
def test_same_as_oracle_rows_marks_order_and_rest(
    data: st.DataObject, frontier_us: int | None, merge_us: int | None
) -> None:
    rows = data.draw(ANY_SOURCES.flatmap(arrivals))
    at_a_row = st.sampled_from(rows).map(lambda row: row[:3]) if rows else st.nothing()
    position = data.draw(st.one_of(at_a_row, POSITIONS))
    read = release(columns(rows), frontier_us, merge_us, position)
    marked = list(zip(listed(read.rows), (MARKS[mark] for mark in read.marks), strict=True))
    expected = read_once(rows, frontier_us, merge_us, position)
    assert marked == expected
    assert listed(read.held) == [row for row in rows if row not in dict(expected)]
    in_order = [row[:3] for row, mark in expected if mark != "late"]
    assert read.position == (in_order[-1] if in_order else position)


def test_marks_are_numbers_in_this_order() -> None:
    assert [READY, SLACK, LATE, HELD] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("key", "mark"),
    [((5, 1, 3), LATE), ((5, 0, 9), LATE), ((5, 1, 4), READY), ((5, 1, 5), READY)],
)
def test_a_row_at_the_position_is_not_late_and_one_before_is(
    key: tuple[int, int, int], mark: int
) -> None:
    read = release(columns([(*key, 0)]), frontier_us=5, merge_us=5, position=(5, 1, 4))
    assert read.marks.tolist() == [mark]


@pytest.mark.parametrize(
    ("frontier_us", "merge_us", "mark"),
    [(7, 7, READY), (7, 6, SLACK), (7, None, SLACK), (6, 6, HELD), (None, None, HELD)],
)
def test_the_frontier_and_the_merge_point_are_included(
    frontier_us: int | None, merge_us: int | None, mark: int
) -> None:
    read = release(columns([(7, 0, 0, 0)]), frontier_us, merge_us, position=None)
    assert read.marks.tolist() == ([] if mark == HELD else [mark])
    assert read.held.event_us.size == (mark == HELD)


def test_late_rows_do_not_move_the_position() -> None:
    read = release(columns([(1, 0, 0, 0)]), frontier_us=9, merge_us=9, position=(5, 0, 0))
    assert read.position == (5, 0, 0)


def test_rows_alike_in_everything_keep_the_order_they_came_in() -> None:
    rows = [(5, 0, 7, 0), (5, 0, 7, 1), (4, 0, 1, 2), (5, 0, 7, 3)]
    read = release(columns(rows), frontier_us=5, merge_us=5, position=None)
    assert read.rows.ref.tolist() == [2, 0, 1, 3]


def test_nothing_gives_nothing() -> None:
    read = release(no_rows(), frontier_us=5, merge_us=5, position=(1, 0, 0))
    assert listed(read.rows) == listed(read.held) == []
    assert read.position == (1, 0, 0)
