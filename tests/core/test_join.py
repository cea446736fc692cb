"""The sliding-window join: compared is what the window still holds, missed is the rest."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from laxity.core.join import LEFT, RIGHT, Pairs, joined
from oracles import pairs_within, walk_join

Read = tuple[int, int, int]  # event, side, key

READS = st.lists(
    st.tuples(st.integers(0, 25), st.sampled_from([LEFT, RIGHT]), st.integers(0, 2)), max_size=30
)
WITHIN = st.integers(0, 12)


def join(reads: list[Read], within_us: int) -> Pairs:
    table = np.array(reads, np.int64).reshape(-1, 3)
    return joined(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy(), within_us)


def parts(reads: list[Read]) -> tuple[list[int], list[int], list[int]]:
    return [r[0] for r in reads], [r[1] for r in reads], [r[2] for r in reads]


def places(pairs: Pairs) -> list[tuple[int, int]]:
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


@given(READS, WITHIN)
def test_same_as_oracle_on_any_read_order_and_missed_is_exactly_the_difference(
    reads: list[Read], within_us: int
) -> None:
    pairs = join(reads, within_us)
    walk = walk_join(*parts(reads), within_us)
    expected = {
        (kept, row) if reads[row][1] == RIGHT else (row, kept)
        for row, met in enumerate(walk)
        for kept in met.compared
    }
    assert sorted(places(pairs)) == sorted(expected)  # each once
    should = pairs_within(*parts(reads), within_us)
    assert expected <= should
    assert pairs.n_compared == len(expected)
    assert pairs.n_missed == len(should - expected)


@given(READS, WITHIN)
def test_in_order_all_pairs_within_meet_once_and_none_is_missed(
    reads: list[Read], within_us: int
) -> None:
    reads = sorted(reads)
    pairs = join(reads, within_us)
    assert sorted(places(pairs)) == sorted(pairs_within(*parts(reads), within_us))
    assert pairs.n_missed == 0


def test_rows_exactly_the_window_apart_meet_and_a_microsecond_more_do_not() -> None:
    assert join([(1, LEFT, 0), (5, RIGHT, 0)], 4).n_compared == 1
    assert join([(1, LEFT, 0), (6, RIGHT, 0)], 4).n_compared == 0


def test_any_key_moves_the_window_of_all() -> None:
    pairs = join([(1, LEFT, 0), (9, LEFT, 1), (2, RIGHT, 0)], 4)
    assert (pairs.n_compared, pairs.n_missed) == (0, 1)


def test_a_row_too_late_to_be_kept_meets_what_is_near_but_nothing_meets_it() -> None:
    reads = [(10, LEFT, 0), (7, LEFT, 0), (5, RIGHT, 0), (6, LEFT, 0)]
    pairs = join(reads, 4)
    assert places(pairs) == [(1, 2)]
    assert pairs.n_missed == 1


def test_many_pairs_of_few_rows_are_all_told() -> None:
    reads = [(0, side, 0) for side in (LEFT, RIGHT) for _ in range(40)]
    pairs = join(reads, 0)
    assert sorted(places(pairs)) == sorted(pairs_within(*parts(reads), 0))
    assert pairs.n_compared == 1_600


def test_no_rows_no_pairs() -> None:
    pairs = join([], 5)
    assert (pairs.n_compared, pairs.n_missed) == (0, 0)
