from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laxity.core.revise import Shape
from laxity.core.triggers import eager, lazy
from laxity.sim.baselines import SortedNoWait, UnsortedDiscard, UnsortedWait
from laxity.sim.retained import Terms
from laxity.sim.revise import Replica, Reviser
from laxity.sim.windows import Aggregate, App, Row, Running
from support.revising import Arriving, apps, arrivals, by_phase, closing, coalesced, oracle

DAY, WEEK = 24, 168  # in hours, the unit of time here


def flush_of(app: App) -> list[tuple[int, Any]]:
    """Rows of which an app makes something, if it ever does."""
    span_us = app.shape.span_us
    return [(ts_us, "flush") for ts_us in range(3 * span_us)] + [(9 * span_us, "flush")]


def gives_results(app: App) -> bool:
    """Whether the app makes anything of those rows, so that they flush (A4)."""
    running = Running(app)
    return any(running.take(Row(ts_us, 0, value)) for ts_us, value in flush_of(app))


def patient(waiting: Any) -> Any:
    return waiting.n_late >= 3


def last_of(app: App, results: list[Row]) -> dict[Any, Any]:
    return {(r.key, r.ts_us, app.kind(r.value)): r.value for r in results}


@settings(max_examples=150)
@given(apps(), arrivals(), st.sampled_from([eager, lazy, patient]), st.integers(0, 3))
def test_lemma_9_the_last_result_is_that_of_sorted_rows(
    app: App, arriving: Arriving, trigger: Any, max_journeys: int
) -> None:
    """Algorithm 1 gives D-bounded eventual determinism (Def. 2)."""
    arriving = closing(app, arriving)
    reviser = Reviser(app, arriving.terms, trigger, flush_of(app), max_journeys)
    results = []
    for row, number in zip(arriving.rows, arriving.numbers, strict=True):
        results += reviser.take(row, number)
        assert reviser.replica.n_journeys <= max_journeys or not gives_results(app)
    last = last_of(app, results + reviser.replica.flush())
    want = {n: v for n, v in oracle(app, arriving.rows).items() if n[0] != 9}
    assert {name: last[name] for name in want} == want
    assert reviser.discarded == []


def test_a_row_less_late_than_a_span_finds_its_whole_context() -> None:
    """It waits until all of it is there, longer than any row may be late."""
    app = App((Aggregate(5, 1, coalesced),))
    reviser = Reviser(app, Terms(lateness_us=2), eager, flush_of(app))
    times_us = [12, 14, 16, 15, 19, 20, 40]
    results = [r for us in times_us for r in reviser.take(Row(us, 0, us))]
    assert last_of(app, results)[0, 12, None] == ((0, 12), (2, 14), (3, 15), (4, 16))


@given(apps(), arrivals())
def test_waiting_gives_what_sorting_gives(app: App, arriving: Arriving) -> None:
    arriving = closing(app, arriving)
    end = arriving.rows[-1]
    late = [*arriving.rows, end._replace(ts_us=end.ts_us + arriving.terms.lateness_us)]
    waiting, strict = UnsortedWait(app, arriving.terms.lateness_us), SortedNoWait(app)
    waited = [result for row in late for result in waiting.take(row)]
    in_order = [result for row in sorted(arriving.rows) for result in strict.take(row)]
    assert last_of(app, waited) == last_of(app, in_order)
    assert len(waited) == len(in_order)


@given(apps(), arrivals())
def test_discarding_gives_what_the_rows_on_time_give(app: App, arriving: Arriving) -> None:
    arriving = closing(app, arriving)
    discard = UnsortedDiscard(app)
    results = [result for row in arriving.rows for result in discard.take(row)]
    newest_us = np.maximum.accumulate([row.ts_us for row in arriving.rows])
    on_time = [row for row, at in zip(arriving.rows, newest_us, strict=True) if row.ts_us == at]
    want = {n: v for n, v in oracle(app, on_time).items() if n[0] != 9}
    assert {n: v for n, v in last_of(app, results).items() if n[0] != 9} == want


def replayed(app: App, begins: list[int]) -> list[bool]:
    """Whether contexts that begin in these hours, replayed one after the other, come out right."""
    replica = Replica(app, [(0, 0), (50, 0)])
    right = []
    for begin in begins:
        rows = [Row(begin + hour, 0, hour) for hour in range(12)]
        back = replica.replay(rows, (begin - 6, begin + 12)) + replica.flush()
        right.append(last_of(app, back) == oracle(app, rows))
        assert replica.n_journeys == 0
    return right


@pytest.mark.parametrize("periodicity", [DAY, WEEK])
@given(st.lists(st.integers(0, 5 * WEEK), min_size=1, max_size=6))
def test_the_period_is_kept_by_time_travel(periodicity: int, begins: list[int]) -> None:
    """Results that depend on the hour of the day, or of the week, are the same when replayed."""
    phases = Aggregate(2, 1, by_phase(periodicity)), Aggregate(4, 2, by_phase(periodicity))
    assert all(replayed(App(phases, periodicity_us=periodicity), begins))


@pytest.mark.parametrize("told", [1, DAY])
def test_a_period_that_is_not_told_is_not_kept(told: int) -> None:
    """The test above is able to fail."""
    app = App((Aggregate(6, 2, by_phase(WEEK)),), periodicity_us=told)
    assert replayed(app, [0, 30, 7]) == [True, False, False]


def contexts_of_one_key(app: App) -> tuple[list[Row], dict[Any, Any]]:
    """What comes of replaying two contexts of one key right after each other, and what should."""
    replica = Replica(app, [(0, "flush"), (50, "flush")])
    early = [Row(ts_us, 0, "early") for ts_us in range(0, 8)]
    later = [Row(ts_us, 0, "later") for ts_us in range(4, 12)]
    results = replica.replay(early, (0, 8)) + replica.replay(later, (0, 11)) + replica.flush()
    want = {n: v for n, v in oracle(app, early).items() if 0 < n[1] <= 8}
    return results, want | {n: v for n, v in oracle(app, later).items() if 0 < n[1] <= 11}


@pytest.mark.parametrize("step", [1, 2, 4])
def test_two_contexts_of_one_key_never_mix(step: int) -> None:
    app = App((Aggregate(4, step, coalesced), Aggregate(4, 1, coalesced)))
    results, want = contexts_of_one_key(app)
    assert last_of(app, results) == want


@pytest.mark.parametrize("share", [0, 0.25, 0.5])
def test_two_contexts_mix_if_the_safety_distance_is_smaller(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above is able to fail."""
    app = App((Aggregate(4, 1, coalesced), Aggregate(4, 1, coalesced)))
    shape = app.shape
    closer = Shape(((int(share * shape.span_us), 1),))
    monkeypatch.setattr(Replica, "_time_shift", _time_shift_of(closer))
    results, want = contexts_of_one_key(app)
    assert last_of(app, results) != want


def _time_shift_of(shape: Shape) -> Any:
    whole = Replica._time_shift

    def time_shift(self: Replica, rows: Any, results: tuple[int, int]) -> Any:
        self._shape = shape
        return whole(self, rows, results)

    return time_shift


def test_stale_journeys_are_flushed() -> None:
    """A context that gives no result leaves a mapping, until the next result or a flush."""
    app = App((Aggregate(2, 1, lambda left_us, rows: None if rows[0].value == "x" else "y"),))
    replica = Replica(app, [(0, "flush"), (9, "flush")])
    for _ in range(3):
        assert replica.replay([Row(5, 0, "x")], (3, 5)) == []
    assert replica.n_journeys == 3
    replica.replay([Row(5, 0, "y")], (3, 5))
    assert replica.n_journeys == 4
    assert [r.ts_us for r in replica.replay([Row(5, 0, "x")], (3, 5))] == [4, 5]
    assert replica.n_journeys == 2  # that of the results, and the last
    assert replica.flush() == []
    assert replica.n_journeys == 0


def test_a_row_too_late_or_not_missing_is_set_aside() -> None:
    app = App((Aggregate(2, 1, coalesced),))
    reviser = Reviser(app, Terms(5, period_us=1), eager, flush_of(app))
    for ts_us in (0, 1, 9, 3, 4, 9, 4):
        reviser.take(Row(ts_us, 0, ts_us))
    assert [row.ts_us for row in reviser.discarded] == [3, 4]


def test_a_context_that_has_not_come_whole_is_waited_for() -> None:
    app = App((Aggregate(3, 1, coalesced),))
    reviser = Reviser(app, Terms(9, period_us=1), eager, flush_of(app))
    for ts_us in (0, 1, 3):
        reviser.take(Row(ts_us, 0, ts_us))
    assert reviser.take(Row(2, 0, 2)) == []
    assert [r.ts_us for r in reviser.take(Row(4, 0, 4))] == [1]  # by the app, without the late row
    answers = reviser.take(Row(5, 0, 5))
    assert [r.ts_us for r in answers] == [2, 0, 1, 2]
    assert answers[-1].value == ((0, 2), (1, 3), (2, 4))
