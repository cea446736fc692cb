from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.core.revise import Shape, merged
from laxity.core.triggers import Waiting, eager, lazy, trigger_of
from laxity.errors import ConfigError
from laxity.sim.windows import App, Row
from support.revising import AGGREGATES, MAX_US, apps, oracle

TIMES = st.sets(st.integers(0, MAX_US), min_size=1, max_size=25)
ONE_AGGREGATE = AGGREGATES.map(lambda aggregate: App((aggregate,)))


def rows_at(times_us: Any, value: str = "") -> list[Row]:
    return [Row(ts_us, 0, f"{value}{ts_us}") for ts_us in sorted(times_us)]


def among(results: dict[Any, Any], lo_us: int, hi_us: int) -> dict[Any, Any]:
    """The results in `(lo, hi]`."""
    return {name: value for name, value in results.items() if lo_us < name[1] <= hi_us}


def changed(app: App, times_us: set[int], late_us: int) -> list[int]:
    """The times of results that a row makes, changes or removes."""
    without = oracle(app, rows_at(times_us - {late_us})).items()
    return [name[1] for name, _ in without ^ oracle(app, rows_at(times_us | {late_us})).items()]


def needed_alone(app: App, times_us: set[int], lo_us: int, hi_us: int) -> dict[Any, Any]:
    """The results in `(lo, hi]` from no other rows than they need."""
    first_us, end_us = app.shape.needed(lo_us, hi_us)
    alone = [ts_us for ts_us in times_us if first_us < ts_us < end_us]
    return among(oracle(app, rows_at(alone)), lo_us, hi_us)


@given(ONE_AGGREGATE, TIMES, st.integers(0, MAX_US))
def test_lemma_1_a_row_affects_results_within_a_window_before_it(
    app: App, times_us: set[int], late_us: int
) -> None:
    size_us = app.shape.windows[0][0]
    assert app.shape.affected(late_us) == (late_us - size_us, late_us)
    assert all(late_us - size_us < ts_us <= late_us for ts_us in changed(app, times_us, late_us))


@given(apps(), TIMES, st.integers(0, MAX_US))
def test_lemma_2_a_row_affects_results_within_a_span_before_it(
    app: App, times_us: set[int], late_us: int
) -> None:
    lo_us, hi_us = app.shape.affected(late_us)
    assert all(lo_us < ts_us <= hi_us for ts_us in changed(app, times_us, late_us))


@given(ONE_AGGREGATE, TIMES, st.integers(0, MAX_US))
def test_lemma_3_a_result_needs_rows_within_a_window_after_it(
    app: App, times_us: set[int], result_us: int
) -> None:
    want = among(oracle(app, rows_at(times_us)), result_us - 1, result_us)
    assert needed_alone(app, times_us, result_us - 1, result_us) == want


@given(apps(), TIMES, st.integers(-MAX_US, MAX_US))
def test_lemma_4_a_result_needs_rows_within_a_span_after_it(
    app: App, times_us: set[int], result_us: int
) -> None:
    want = among(oracle(app, rows_at(times_us)), result_us - 1, result_us)
    assert needed_alone(app, times_us, result_us - 1, result_us) == want


@given(apps(), TIMES, st.integers(0, MAX_US))
def test_lemma_5_the_context_gives_all_that_a_row_affects(
    app: App, times_us: set[int], late_us: int
) -> None:
    lo_us, hi_us = app.shape.context(late_us)
    context = [ts_us for ts_us in times_us | {late_us} if lo_us < ts_us < hi_us]
    affected = app.shape.affected(late_us)
    want = among(oracle(app, rows_at(times_us | {late_us})), *affected)
    assert among(oracle(app, rows_at(context)), *affected) == want


@given(apps(), TIMES, st.sets(st.integers(0, MAX_US), min_size=2, max_size=4))
def test_lemma_6_contexts_that_overlap_may_be_replayed_as_one(
    app: App, times_us: set[int], late_us: set[int]
) -> None:
    times_us = times_us | late_us
    apart: dict[Any, Any] = {}
    for ts_us in late_us:
        apart |= needed_alone(app, times_us, *app.shape.affected(ts_us))
    late = np.array(sorted(late_us))
    whole = merged(np.zeros(late.size, np.int64), *app.shape.affected(late))
    together: dict[Any, Any] = {}
    for lo_us, hi_us in zip(whole.lo_us.tolist(), whole.hi_us.tolist(), strict=True):
        together |= needed_alone(app, times_us, lo_us, hi_us)
    assert together == apart
    assert (whole.lo_us[1:] > whole.hi_us[:-1]).all()


@given(apps(), TIMES, TIMES, st.integers(0, 3))
def test_lemma_7_a_span_apart_sequences_share_no_result(
    app: App, one_us: set[int], other_us: set[int], more_us: int
) -> None:
    moved_us = max(one_us) + app.shape.span_us + more_us - min(other_us)
    one, other = rows_at(one_us), rows_at([ts_us + moved_us for ts_us in other_us])
    apart = oracle(app, one), oracle(app, other)
    assert not apart[0].keys() & apart[1].keys()
    assert oracle(app, one + other) == apart[0] | apart[1]


@given(apps(), TIMES, st.one_of(st.none(), st.integers(-MAX_US, 3 * MAX_US)))
def test_lemma_8_a_journey_changes_nothing_but_the_time(
    app: App, times_us: set[int], after_us: int | None
) -> None:
    shape = app.shape
    results = (min(times_us) - shape.span_us, max(times_us))
    time_shift = shape.time_shift(np.array(sorted(times_us)), results, after_us)
    moved = [row._replace(ts_us=row.ts_us + time_shift.offset_us) for row in rows_at(times_us)]
    back = {(k, time_shift.back(ts), kind): v for (k, ts, kind), v in oracle(app, moved).items()}
    assert back == oracle(app, rows_at(times_us))
    assert time_shift.offset_us % shape.step_us == 0
    assert time_shift.last_us == moved[-1].ts_us
    if after_us is not None:
        assert moved[0].ts_us > after_us + shape.span_us
        assert moved[0].ts_us - shape.step_us <= after_us + shape.span_us  # and no further


def test_observation_3_tuples_alike_in_their_alignment_are_in_as_many_windows() -> None:
    """The seed's example: windows of 3 by 2 and 3 by 1, rows at 5 and 7.

    The seed says each is in two windows; as right edges are exclusive that is so for even times.
    """
    shape = Shape.of([(3, 2), (3, 1)])
    assert shape.step_us == 2
    held = [[left for left in range(0, 20, 2) if left <= ts < left + 3] for ts in (5, 7, 6)]
    assert held == [[4], [6], [4, 6]]


INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 6)))


@given(INTERVALS, INTERVALS)
def test_same_as_oracle_merged_intervals(some: Any, asked: Any) -> None:
    """They hold the same times, and are apart."""
    key, lo, size = np.array(some, np.int64).reshape(-1, 3).T
    joined = merged(key, lo, lo + size)
    places = [(k, ts) for k in range(3) for ts in range(-2, 30)]
    want = [any(k == at and a < ts <= a + n for at, a, n in some) for k, ts in places]
    keys, times = np.array(places).T
    assert joined.hold(keys, times).tolist() == want
    assert ((joined.key[1:] > joined.key[:-1]) | (joined.lo_us[1:] > joined.hi_us[:-1])).all()
    k, a, n = np.array(asked, np.int64).reshape(-1, 3).T
    met = [
        any(at == here and max(lo, from_) < min(lo + m, from_ + n + 1) for here, lo, m in some)
        for at, from_, n in asked
    ]
    assert joined.meet(k, a, a + n + 1).tolist() == met


@pytest.mark.parametrize(
    ("windows", "periodicity", "error"),
    [
        ([], None, "at least one window"),
        ([("1h", "2h")], None, "advance must be ≤ its size, got 2h > 1h"),
        ([("0s", "1h")], None, "a window's size must be > 0, got 0s"),
        ([("1h", 0)], None, "a window's advance must be > 0, got 0s"),
        ([("1h", "1h")], -5, "periodicity must be > 0, got -5us"),
        ([("an hour", "1h")], None, "a window's size must be a number and a unit"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(windows: Any, periodicity: Any, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        Shape.of(windows, periodicity)


def test_what_is_answered_and_what_is_final() -> None:
    shape = Shape.of([("2h", "1h"), ("24h", "1h")])
    hour_us = 3_600_000_000
    assert shape.span_us == 26 * hour_us
    assert shape.watermark_us(100 * hour_us) == 74 * hour_us
    assert shape.final_us(2_000 * hour_us, lateness_us=40 * 24 * hour_us) == 1_014 * hour_us


def test_triggers_are_asked_for_many_keys_at_once() -> None:
    many = Waiting(
        n_late=np.array([1, 5]),
        n_on_time=np.array([0, 2]),
        oldest_us=np.array([3, 4]),
        newest_us=np.array([3, 9]),
        frontier_us=20,
    )
    assert eager(many).tolist() == [True, True]
    assert lazy(many).tolist() == [False, True]


def test_a_trigger_is_a_name_or_a_function() -> None:
    own = lambda waiting: waiting.n_late > 2  # noqa: E731
    assert (trigger_of("eager"), trigger_of("lazy"), trigger_of(own)) == (eager, lazy, own)
    for wrong in ("Eager", 3, None):
        with pytest.raises(ConfigError, match="eager, lazy or a function"):
            trigger_of(wrong)  # type: ignore[arg-type]
