"""The virtual clock: order, ties, and time that never goes back."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.errors import ConfigError
from laxity.sim.clock import Clock


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(-2, 2)), max_size=60))
def test_actions_run_by_time_then_priority_then_insertion(plan: list[tuple[int, int]]) -> None:
    clock = Clock()
    seen: list[tuple[int, int, int]] = []
    for number, (time_us, priority) in enumerate(plan):
        clock.at(time_us, partial(seen.append, (time_us, priority, number)), priority)
    clock.run()
    assert seen == sorted((*step, number) for number, step in enumerate(plan))


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(0, 50))
def test_run_in_two_parts_is_run_in_one(times: list[int], cut_us: int) -> None:
    whole, parts = run_to(times, [None]), run_to(times, [cut_us, None])
    assert whole == parts


def note(clock: Clock, seen: list[tuple[int, int]], number: int) -> None:
    seen.append((clock.now_us, number))


def run_to(times: list[int], stops: list[int | None]) -> list[tuple[int, int]]:
    clock = Clock()
    seen: list[tuple[int, int]] = []
    for number, time_us in enumerate(times):
        clock.at(time_us, partial(note, clock, seen, number))
    for stop in stops:
        clock.run(stop)
    return seen


def test_run_until_includes_the_bound_and_stops_there() -> None:
    clock, seen = Clock(start_us=5), []
    clock.at(10, lambda: seen.append(10))
    clock.at(11, lambda: seen.append(11))
    clock.run(until_us=10)
    assert (seen, clock.now_us, clock.n_pending) == ([10], 10, 1)
    clock.run()
    assert (seen, clock.now_us) == ([10, 11], 11)


def test_an_action_may_schedule_another_for_the_same_moment() -> None:
    clock, seen = Clock(), []
    clock.at(3, lambda: clock.after(0, lambda: seen.append(clock.now_us)))
    clock.run()
    assert seen == [3]


def test_every_ends_with_its_bound() -> None:
    clock, seen = Clock(start_us=100), []
    clock.every(10, lambda: seen.append(clock.now_us), until_us=125)
    clock.run()
    assert seen == [110, 120]


def test_every_can_outrank_what_happens_at_the_same_time() -> None:
    clock, seen = Clock(), []
    clock.at(10, lambda: seen.append("row"))
    clock.every(10, lambda: seen.append("tick"), until_us=10, priority=-1)
    clock.run()
    assert seen == ["tick", "row"]


def test_the_past_is_refused() -> None:
    clock = Clock(start_us=10)
    with pytest.raises(ConfigError, match="got 9, but it is already 10"):
        clock.at(9, lambda: None)
    with pytest.raises(ConfigError, match="past"):
        clock.after(-1, lambda: None)
    with pytest.raises(ConfigError, match="past"):
        clock.run(until_us=9)


def test_a_period_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="period_us must be > 0, got 0"):
        Clock().every(0, lambda: None, until_us=1)
