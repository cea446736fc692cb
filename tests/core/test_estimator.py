import subprocess
import sys
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import pytest

from laxity.core.estimator import FEW_POINTS, FitInBackground, FitNow, Model, table
from laxity.core.history import Point, Points
from laxity.core.operators import Operator
from laxity.core.regressors import (
    GaussianProcess,
    Isotonic,
    Linear,
    Regressor,
    SupportVectors,
)
from support.tuning import S, measure

MERGE = Operator()
MAKES = [GaussianProcess, lambda _: Linear(), lambda _: Isotonic(), lambda _: SupportVectors()]
NAMES = ["gaussian", "linear", "isotonic", "svm"]


def model_of(points: Points, **how: Any) -> Model:
    model = FitNow(**how).latest("merge", MERGE, points)
    assert model is not None
    return model


def at(slack_us: int, lag_us: int) -> Point:
    return Point(100 * S, S, S, slack_us, lag_us, lag_us, 1_000, 0, 0)


@pytest.mark.parametrize("make", MAKES, ids=NAMES)
def test_any_regressor_learns_the_floor_and_what_waiting_adds(make: Any) -> None:
    model = model_of(measure(), make=make)
    situations = [at(S, 6 * S), at(5 * S, 6 * S), at(5 * S, S)]
    mean_s, std_s = model.latency_s(table(tuple(situations)))
    np.testing.assert_allclose(mean_s, [1.55, 5.55, 1.55], atol=0.25)
    assert (std_s >= 0).all()
    early = model.early_per_s(table(tuple(situations)))
    np.testing.assert_allclose(early, [500, 500, 0], atol=100)


def test_beyond_all_points_latency_still_grows_with_slack_and_is_less_sure() -> None:
    model = model_of(measure())
    mean_s, std_s = model.latency_s(table((at(4 * S, 9 * S), at(30 * S, 40 * S))))
    assert mean_s[1] > 25
    assert std_s[1] > std_s[0]


def test_points_at_one_slack_only_say_what_more_would_do() -> None:
    """All that can be known of more slack is what the definitions say."""
    points = tuple(Point(n * S, S, S, S, 3 * S, 3 * S, 1_000, 1_500_000, 500) for n in range(12))
    mean_s, _ = model_of(points).latency_s(table((at(S, 3 * S), at(3 * S, 9 * S))))
    np.testing.assert_allclose(mean_s, [1.5, 3.5], atol=0.05)


@pytest.mark.parametrize("make", [GaussianProcess, lambda _: SupportVectors()])
def test_a_seed_gives_the_same_model(make: Any) -> None:
    rows = table((at(2 * S, 3 * S),))
    first, again = (model_of(measure(30, seed=n), seed=4, make=make) for n in (1, 1))
    assert first.latency_s(rows) == again.latency_s(rows)
    again.latency.rest.fit(np.arange(20.0).reshape(-1, 1), np.arange(20.0))


def test_two_seeds_give_two_processes() -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    processes: list[Regressor] = [GaussianProcess(seed) for seed in (0, 0, 1)]
    for process in processes:
        process.fit(x, np.sin(x[:, 0]))
    same, again, other = (process.predict(x + 0.3)[0].tolist() for process in processes)
    assert same == again != other


def test_too_few_points_make_no_model() -> None:
    assert FitNow().latest("merge", MERGE, measure(FEW_POINTS - 1)) is None
    assert FitNow().latest("merge", MERGE, measure(FEW_POINTS)) is not None


class Later(Executor):
    """Does the work when told to."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future[Any], Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.jobs.append((future, lambda: fn(*args, **kwargs)))
        return future

    def work(self) -> None:
        future, work = self.jobs.pop()
        future.set_result(work())


def test_a_fit_aside_gives_the_last_model_that_is_finished() -> None:
    later, old, new = Later(), measure(20), measure(25)
    background = FitInBackground(later, FitNow(make=lambda _: Linear()))
    assert background.latest("merge", MERGE, old) is None
    assert background.latest("merge", MERGE, new) is None
    assert len(later.jobs) == 1  # one at a time
    later.work()
    first = background.latest("merge", MERGE, new)
    assert first is not None
    assert background.latest("merge", MERGE, new) is first
    later.work()
    assert background.latest("merge", MERGE, new) is not first
    assert not later.jobs  # nothing new to learn from
    assert background.latest("other", MERGE, old) is None  # each operator has its own


def test_deciders_are_imported_without_sklearn() -> None:
    code = "import sys, laxity.core.tuned, laxity.core.slack; print('sklearn' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
