"""Hill climbing: as good as trying everything, at a hundredth of the evaluations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.core.operators import Graph, Operator
from laxity.core.optimizer import N_STEPS, Curve, Found, Hill, best_of, climb, curve

DEADLINE_US = 6e6
SLACKS_US = np.linspace(0, DEADLINE_US, N_STEPS + 1)
LINE = Graph(
    {
        "first": Operator(),
        "second": Operator((("first", 50_000),)),
        "last": Operator((("second", 0),), merges=False),
    }
)
FORK = Graph(
    {
        "first": Operator(),
        "second": Operator(),
        "last": Operator((("first", 0), ("second", 90_000)), merges=False),
    }
)
LOW = {"first": 0, "second": 0}


def some_curves(seed: int) -> dict[str, Curve]:
    """Two merges whose sources lag by a Gamma each, and an operator behind them."""
    rng = np.random.default_rng(seed)
    made = {}
    for name in ("first", "second"):
        shape = rng.uniform(1, 20)
        lags_us = np.sort(rng.gamma(shape, rng.uniform(0.3e6, 5e6) / shape, 2_000))
        lagging = 1 - np.searchsorted(lags_us, SLACKS_US, side="right") / lags_us.size
        floor_us = rng.uniform(0.2e6, 0.8e6)
        made[name] = curve(floor_us + SLACKS_US, rng.uniform(100, 1_000) * lagging)
    return made | {"last": Curve(np.array([rng.uniform(0.1e6, 0.5e6)]), np.zeros(1))}


def exhaustive(graph: Graph, curves: dict[str, Curve], limit_us: float) -> tuple[float, int]:
    """The fewest rows of all pairs of slacks that keep the limit, and how many pairs there are."""
    hill = Hill(graph, curves)
    best = np.inf
    for first in range(N_STEPS + 1):
        for second in range(N_STEPS + 1):
            latency_us, early = hill.at({"first": first, "second": second})
            if latency_us < limit_us:
                best = min(best, early)
    return best, hill.n_evaluated


@pytest.mark.parametrize("graph", [LINE, FORK], ids=["line", "fork"])
@pytest.mark.parametrize("seed", range(6))
def test_same_as_oracle_within_a_twentieth_at_a_hundredth_of_the_cost(
    graph: Graph, seed: int
) -> None:
    curves = some_curves(seed)
    best, n_all = exhaustive(graph, curves, DEADLINE_US)
    found = best_of(Hill(graph, curves), LOW, DEADLINE_US)
    assert found.keeps
    assert found.latency_us < DEADLINE_US
    assert best <= found.early_per_s <= max(1.05 * best, best + 0.1)
    assert found.n_evaluated <= n_all / 100


def vectorised_best(curves: dict[str, Curve]) -> float:
    """The oracle for the line, all pairs at once."""
    a, b = curves["first"], curves["second"]
    total_us = a.latency_us[:, None] + b.latency_us + 50_000 + curves["last"].latency_us[0]
    rows = a.early_per_s[:, None] + b.early_per_s
    return float(np.where(total_us < DEADLINE_US, rows, np.inf).min())


def test_same_as_oracle_for_two_hundred_graphs() -> None:
    for seed in range(200):
        curves = some_curves(1_000 + seed)
        found = best_of(Hill(LINE, curves), LOW, DEADLINE_US)
        best = vectorised_best(curves)
        assert found.early_per_s <= max(1.05 * best, best + 0.1), seed
        assert found.n_evaluated <= (N_STEPS + 1) ** 2 / 100, seed


PLACES = st.fixed_dictionaries(dict.fromkeys(LOW, st.integers(0, N_STEPS)))


@given(st.integers(0, 500), PLACES, st.floats(0.5e6, 12e6))
def test_a_climb_is_never_worse_than_its_start(
    seed: int, start: dict[str, int], limit_us: float
) -> None:
    hill = Hill(LINE, some_curves(seed))
    latency_us, early = hill.at(start)
    for found in (climb(hill, start, limit_us), best_of(hill, start, limit_us)):
        assert found.keeps == (latency_us < limit_us)
        assert found.early_per_s <= early + 0.1
        if found.keeps:
            assert found.latency_us < limit_us
        else:
            assert found.places == start


@given(st.integers(0, 500), st.floats(0.5e6, 12e6))
def test_from_no_slack_the_limit_is_missed_only_if_nothing_keeps_it(
    seed: int, limit_us: float
) -> None:
    curves = some_curves(seed)
    found = best_of(Hill(LINE, curves), LOW, limit_us)
    least_us = Hill(LINE, curves).at(LOW)[0]
    assert found.keeps == (least_us < limit_us)
    assert found.keeps == (found.latency_us < limit_us)


def test_of_equal_slacks_the_larger_wins_up_to_the_limit() -> None:
    flat = {"merge": curve(SLACKS_US.copy(), np.full(N_STEPS + 1, 7.0))}
    found = best_of(Hill(Graph({"merge": Operator()}), flat), {"merge": 3}, 3.5e6)
    assert SLACKS_US[found.places["merge"]] < 3.5e6 <= SLACKS_US[found.places["merge"] + 1]


def test_one_merge_gives_up_what_another_needs() -> None:
    """All the slack is where it saves nothing; only by taking it away can rows be saved."""
    idle = curve(SLACKS_US.copy(), np.zeros(N_STEPS + 1))
    busy = curve(SLACKS_US.copy(), np.linspace(900, 0, N_STEPS + 1))
    graph = Graph({"idle": Operator(), "busy": Operator((("idle", 0),))})
    found: Found = climb(
        Hill(graph, {"idle": idle, "busy": busy}), {"idle": N_STEPS - 1, "busy": 0}, DEADLINE_US
    )
    assert found.places["busy"] >= N_STEPS - 2
    assert found.early_per_s < 20
