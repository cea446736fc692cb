"""Where a revise stands: what is late, answered and final, and how much is kept."""

from hypothesis import given
from hypothesis import strategies as st

from laxity.core.holes import BEGINNING
from laxity.core.moment import CONTEXTS, N_BUCKETS, RECENT, ReviseState
from laxity.core.revise import Shape

SHAPE = Shape.of([(2, 1), (3, 1)])
TIMES = st.integers(0, 10_000)


def test_nothing_is_late_in_the_first_batch() -> None:
    moment = ReviseState().moment(SHAPE, lateness_us=10, newest_us=7)
    assert moment.before_us == moment.accepted_us == BEGINNING
    assert (moment.newest_us, moment.watermark_us) == (7, 2)


def test_time_does_not_go_back() -> None:
    moment = ReviseState(newest_us=9).moment(SHAPE, lateness_us=10, newest_us=4)
    assert moment.newest_us == moment.before_us == 9
    assert moment.watermark_us == moment.answered_us


@given(TIMES, TIMES, st.integers(0, 500))
def test_a_row_that_is_accepted_touches_no_final_result(
    before_us: int, newest_us: int, lateness_us: int
) -> None:
    moment = ReviseState(newest_us=before_us).moment(SHAPE, lateness_us, newest_us)
    following = ReviseState(newest_us=moment.newest_us).moment(SHAPE, lateness_us, None)
    first_us, _ = SHAPE.affected(following.accepted_us)
    assert first_us >= moment.final_us


@given(st.lists(st.tuples(st.integers(1, 900), st.integers(0, 50)), min_size=1, max_size=30))
def test_kept_rows_are_counted_until_they_expire(batches: list[tuple[int, int]]) -> None:
    shape, lateness_us = Shape.of([(640, 1)]), 6_400
    memory, newest_us, added = ReviseState(), 0, []
    for further_us, n_rows in batches:
        newest_us += further_us
        moment = memory.moment(shape, lateness_us, newest_us)
        floor_us, width_us = moment.shelf(RECENT)
        counts = {(newest_us - floor_us) // width_us: n_rows}
        stock = moment.stocked(memory.stock, {RECENT: counts})
        memory = ReviseState(newest_us=newest_us, stock=stock)
        added.append((newest_us, n_rows))
        alive = sum(n for us, n in added if us > moment.watermark_us)
        nearly = sum(n for us, n in added if us > moment.watermark_us - 2 * width_us)
        assert alive <= memory.n_kept <= nearly
        assert len(stock[RECENT]) <= N_BUCKETS + 3
        assert not stock[CONTEXTS]
