"""The slack rules: what each says to what it has seen."""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.core.slack import (
    ENOUGH_ROWS,
    GRID,
    RECENT_ROWS,
    Fixed,
    MaxDelay,
    Memory,
    Quantile,
    Seen,
    SlackRule,
    Tcp,
)
from laxity.errors import ConfigError
from oracles import quantile

LATENESS = st.lists(st.integers(0, 60), min_size=1, max_size=40)


def seen(values_us: list[int], times: int = 1, latency_us: int | None = None) -> Seen:
    """A batch of so late rows, each so many times."""
    grid_us = tuple(quantile(values_us, q) for q in GRID)
    return Seen(len(values_us) * times, grid_us, latency_us)


def follow(rule: SlackRule, batches: list[Seen]) -> list[int | None]:
    """What a rule says batch by batch, its memory going through JSON in between."""
    memory: Memory = {}
    said = []
    for batch in batches:
        slack_us, memory = rule.next(memory, batch)
        memory = json.loads(json.dumps(memory))
        said.append(slack_us)
    return said


@pytest.mark.parametrize(
    ("slack", "us"), [(None, None), ("0s", 0), (timedelta(seconds=2), 2 * 10**6)]
)
def test_fixed_says_the_same_whatever_it_sees(
    slack: str | timedelta | None, us: int | None
) -> None:
    assert follow(Fixed(slack), [Seen(), seen([5], latency_us=7)]) == [us, us]


@given(st.lists(st.one_of(LATENESS, st.just([])), max_size=6))
def test_same_as_oracle_max_delay_is_the_largest_lateness_ever(batches: list[list[int]]) -> None:
    said = follow(MaxDelay(), [seen(us) if us else Seen() for us in batches])
    so_far: list[int] = []
    for values_us, slack_us in zip(batches, said, strict=True):
        so_far += values_us
        assert slack_us == max(so_far, default=0)


def test_tcp_halves_when_latency_rises_adds_a_second_when_it_falls_and_else_stays() -> None:
    latencies = [10, 11, 11, None, 12, 3, None, 2]
    said = follow(Tcp("4s"), [Seen(latency_us=us) for us in latencies])
    s = 1_000_000
    assert said == [4 * s, 2 * s, 2 * s, 2 * s, s, 2 * s, 2 * s, 3 * s]


def test_tcp_stops_at_nothing_to_wait_for() -> None:
    assert follow(Tcp("2us"), [Seen(latency_us=us) for us in range(4)]) == [2, 1, 0, 0]


@given(LATENESS, st.sampled_from(GRID[1:]))
def test_same_as_oracle_quantile_of_one_batch(values_us: list[int], q: float) -> None:
    rule = Quantile(q, at_least="0s", at_most="7d")
    assert follow(rule, [seen(values_us, times=ENOUGH_ROWS)]) == [quantile(values_us, q)]


@pytest.mark.parametrize("q", GRID[1:])
def test_a_remembered_quantile_is_found_whatever_the_number_of_rows(q: float) -> None:
    rule = Quantile(q, at_least="0s", at_most="7d")
    for n_rows in range(ENOUGH_ROWS, ENOUGH_ROWS + 100):  # shares of them are not always exact
        assert rule.next({}, Seen(n_rows, tuple(range(11))))[0] == GRID.index(q)


@given(st.lists(LATENESS, min_size=2, max_size=4), st.sampled_from(GRID[1:]))
def test_the_quantile_of_several_batches_covers_its_share_and_exceeds_none_of_theirs(
    batches: list[list[int]], q: float
) -> None:
    """Batches are remembered at some quantiles only: what is said errs on the longer side."""
    rule = Quantile(q, at_least="0s", at_most="7d")
    said = follow(rule, [seen(us, times=ENOUGH_ROWS) for us in batches])[-1]
    assert said is not None
    exact = quantile([us for values_us in batches for us in values_us], q)
    assert exact <= said <= max(quantile(values_us, q) for values_us in batches)


def test_a_quantile_between_those_remembered_is_the_next_above() -> None:
    values_us = list(range(1_000))
    rule = Quantile(0.6, at_least="0s")
    assert follow(rule, [seen(values_us)]) == [quantile(values_us, 0.75)]


def test_quantile_waits_as_long_as_it_may_until_enough_rows_came() -> None:
    rule = Quantile(0.5, at_least="0s", at_most="9s")
    few = seen([5] * (ENOUGH_ROWS - 1))
    assert follow(rule, [few, Seen(), seen([5])]) == [9_000_000, 9_000_000, 5]


def test_rows_without_lateness_do_not_count_as_enough() -> None:
    rule = Quantile(0.5, at_least="0s", at_most="9s")
    assert follow(rule, [Seen(n_rows=10_000)]) == [9_000_000]


@pytest.mark.parametrize(("late_us", "slack_us"), [(1, 4), (4, 4), (5, 5), (6, 6), (9, 6)])
def test_quantile_stays_within_its_bounds(late_us: int, slack_us: int) -> None:
    rule = Quantile(0.5, at_least="4us", at_most="6us")
    assert follow(rule, [seen([late_us], times=1_000)]) == [slack_us]


def test_quantile_looks_back_on_recent_rows_only() -> None:
    rule = Quantile(1.0, at_least="0s", at_most="7d")
    old, new = seen([50], times=500), seen([3], times=RECENT_ROWS - 1)
    assert follow(rule, [old, new, seen([4])]) == [50, 50, 4]


def test_big_batches_weigh_more() -> None:
    rule = Quantile(0.9, at_least="0s", at_most="7d")
    assert follow(rule, [seen([50], times=90), seen([3], times=910)])[-1] == 3
    assert follow(rule, [seen([50], times=110), seen([3], times=890)])[-1] == 50


@pytest.mark.parametrize("q", [0.0, -0.5, 1.01, float("nan")])
def test_a_quantile_out_of_range_is_refused(q: float) -> None:
    with pytest.raises(ConfigError, match=rf"q must lie in \(0, 1\], got {q}"):
        Quantile(q)


def test_bounds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ConfigError, match="at_least 2s is more than at_most 1s"):
        Quantile(0.5, at_least="2s", at_most="1s")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (Fixed, "slack"),
        (Tcp, "start"),
        (lambda bad: Quantile(0.5, at_least=bad), "at_least"),
        (lambda bad: Quantile(0.5, at_most=bad), "at_most"),
    ],
)
def test_bad_durations_are_refused_when_a_rule_is_made(
    make: Callable[[str], SlackRule], name: str
) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be ≥ 0, got -1s"):
        make("-1s")
    with pytest.raises(ConfigError, match=f"{name} must be a number and a unit .*; got 'soon'"):
        make("soon")


def test_rules_say_in_words_what_they_do() -> None:
    assert str(Fixed("3s")) == "3s"
    assert str(Fixed(None)) == "until every source is past"
    assert str(MaxDelay()) == "the largest lateness seen"
    assert str(Tcp("4s")) == "from 4s, halved when latency rises, 1s more when it falls"
    assert str(Quantile(0.95)) == "the 0.95 quantile of lateness, 50ms to 7d"
