"""Delay models: what each promises, and that the fast queue is the obvious one."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from laxity.core.delays import (
    Constant,
    DelayModel,
    Empirical,
    Exponential,
    Gamma,
    Growing,
    ZipfPeriodic,
    ZipfPhase,
    parse_delay,
    serial_us,
)
from laxity.errors import ConfigError

SEED_PHASES = "zipf:20s,1.0,10ms;50s,0.35,2ms"

events = st.lists(st.integers(0, 200_000), max_size=60).map(
    lambda times: np.array(sorted(times), np.int64)
)
phases = st.lists(
    st.builds(
        ZipfPhase,
        length_us=st.integers(1, 50_000),
        exponent=st.floats(0, 3),
        max_us=st.integers(1, 12).map(lambda ms: ms * 1_000),
    ),
    min_size=1,
    max_size=3,
).map(tuple)
models = st.one_of(
    st.builds(Constant, st.integers(0, 10**6)),
    st.builds(Gamma, st.floats(0.1, 100), st.integers(1, 10**6)),
    st.builds(Exponential, st.integers(1, 10**6)),
    st.builds(Growing, st.integers(0, 10**4)),
    st.builds(Empirical, st.lists(st.integers(0, 10**9), min_size=1, max_size=9).map(tuple)),
    st.builds(ZipfPeriodic, phases),
)


def draw(model: DelayModel, event_us: NDArray[np.int64], seed: int = 0) -> NDArray[np.int64]:
    return model.arrivals_us(event_us, np.random.default_rng(seed))


def one_by_one(
    event_us: NDArray[np.int64], phases: tuple[ZipfPhase, ...], uniform: NDArray[np.float64]
) -> list[int]:
    """The serial queue as a loop over rows: the phase is looked up when a row's turn comes."""
    arrivals: list[int] = []
    for event, number in zip(event_us.tolist(), uniform, strict=True):
        turn = max(event, arrivals[-1]) if arrivals else event
        into = (turn - int(event_us[0])) % sum(phase.length_us for phase in phases)
        index = 0
        while into >= phases[index].length_us:
            into -= phases[index].length_us
            index += 1
        arrivals.append(turn + int(phases[index].quantile_us(np.array([number]))[0]))
    return arrivals


@given(models, events)
def test_no_row_arrives_before_its_event(model: DelayModel, event_us: NDArray[np.int64]) -> None:
    arrival_us = draw(model, event_us)
    assert arrival_us.dtype == np.int64
    assert arrival_us.shape == event_us.shape
    assert np.all(arrival_us >= event_us)


@given(models, events)
def test_the_same_seed_gives_the_same_arrivals(
    model: DelayModel, event_us: NDArray[np.int64]
) -> None:
    assert np.array_equal(draw(model, event_us, 5), draw(model, event_us, 5))


@pytest.mark.parametrize("text", ["gamma:60,4ms", "exponential:240ms", SEED_PHASES])
def test_another_seed_gives_other_arrivals(text: str) -> None:
    event_us = np.arange(100, dtype=np.int64) * 2_000
    model = parse_delay(text)
    assert not np.array_equal(draw(model, event_us, 1), draw(model, event_us, 2))


@given(st.one_of(st.builds(Growing, st.integers(0, 99)), st.builds(ZipfPeriodic, phases)), events)
def test_queues_keep_the_order_of_events(model: DelayModel, event_us: NDArray[np.int64]) -> None:
    assert np.all(np.diff(draw(model, event_us)) >= 0)


@given(phases, events, st.integers(0, 9))
def test_same_as_oracle_zipf_phases(
    phases: tuple[ZipfPhase, ...], event_us: NDArray[np.int64], seed: int
) -> None:
    uniform = np.random.default_rng(seed).random(event_us.size)
    expected = one_by_one(event_us, phases, uniform)
    assert draw(ZipfPeriodic(phases), event_us, seed).tolist() == expected


@given(events, st.data(), st.integers(0, 300_000))
def test_same_as_oracle_serial_queue(
    event_us: NDArray[np.int64], data: st.DataObject, free_us: int
) -> None:
    costs = st.lists(st.integers(0, 9_000), min_size=event_us.size, max_size=event_us.size)
    cost_us = np.array(data.draw(costs), np.int64)
    expected: list[int] = []
    for event, cost in zip(event_us.tolist(), cost_us.tolist(), strict=True):
        free_us_then = expected[-1] if expected else free_us
        expected.append(max(event, free_us_then) + cost)
    assert serial_us(event_us, cost_us, free_us).tolist() == expected


def test_a_zipf_delay_is_as_likely_as_its_rank_says() -> None:
    phase = ZipfPhase(length_us=1, exponent=1.0, max_us=4_000)
    drawn = phase.quantile_us(np.random.default_rng(0).random(100_000)) // 1_000
    shares = np.bincount(drawn, minlength=5)[1:] / drawn.size
    weights = 1 / np.arange(1, 5)
    assert np.allclose(shares, weights / weights.sum(), atol=0.01)


def test_policy_1_is_some_seven_seconds_late_in_slow_phases_and_recovers() -> None:
    event_us = np.arange(70 * 500, dtype=np.int64) * 2_000
    late_us = draw(parse_delay(SEED_PHASES), event_us) - event_us
    assert 6_000_000 < late_us.max() < 10_000_000
    assert late_us[-1] < 100_000


def test_policy_2_adds_the_same_with_every_row() -> None:
    assert draw(Growing(1_000), np.array([0, 0, 50], np.int64)).tolist() == [1_000, 2_000, 3_050]


def test_means_are_as_configured() -> None:
    event_us = np.zeros(50_000, np.int64)
    assert draw(parse_delay("gamma:60,4ms"), event_us).mean() == pytest.approx(240_000, rel=0.02)
    assert draw(parse_delay("exponential:240ms"), event_us).mean() == pytest.approx(
        240_000, rel=0.02
    )


def test_option_strings_name_every_model(tmp_path: Path) -> None:
    file = tmp_path / "delays.csv"
    file.write_text("delay_us\n5\n7e0\n")
    assert parse_delay("constant:150ms") == Constant(150_000)
    assert parse_delay("gamma:60,4ms") == Gamma(60, 4_000)
    assert parse_delay("exponential:240ms") == Exponential(240_000)
    assert parse_delay("growing:1ms") == Growing(1_000)
    assert parse_delay(f"empirical:{file}") == Empirical((5, 7))
    assert parse_delay(SEED_PHASES) == ZipfPeriodic(
        (ZipfPhase(20_000_000, 1.0, 10_000), ZipfPhase(50_000_000, 0.35, 2_000))
    )


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20))
def test_empirical_draws_only_delays_it_has_seen(values_us: list[int]) -> None:
    drawn = draw(Empirical(tuple(values_us)), np.zeros(50, np.int64))
    assert set(drawn.tolist()) <= set(values_us)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "constant",
        "constant:5",
        "constant:-1s",
        "pareto:1s",
        "gamma:60",
        "gamma:x,4ms",
        "gamma:nan,4ms",
        "gamma:0,4ms",
        "gamma:60,0s",
        "exponential:0s",
        "zipf:",
        "zipf:20s,1.0",
        "zipf:0s,1.0,10ms",
        "zipf:20s,1.0,1500us",
        "zipf:20s,1.0,0ms",
        "zipf:20s,-2,10ms",
        "growing:",
        "empirical:/no/such/file",
    ],
)
def test_a_bad_option_is_refused_with_its_value_and_the_forms(text: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s)forms constant:150ms.*got {re.escape(repr(text))}"):
        parse_delay(text)


@pytest.mark.parametrize("content", ["", "delay_us\n", "1\nsoon\n", "-4\n", "inf\n", "nan\n1"])
def test_a_file_without_delays_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "delays.txt"
    file.write_text(content)
    with pytest.raises(ConfigError):
        Empirical.load(file)


def test_a_queue_without_phases_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one phase"):
        ZipfPeriodic(())
