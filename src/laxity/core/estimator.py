"""What a slack would do: the latency of an operator, and the rows it would read early.

Two models per operator (Slack-ScaleGate, §5.2.1), learned from points. The features are those of
the seed's eq. 6: slack, hour, minute and second of the newest row, threads, sliding window; and
two that a merge can see as well: the lag of the slowest source and the rows per second.

What the definitions say is not left to learning. By Def. 3.1 a row waits for the slack or for the
slowest source, whichever is less; and rows are read early while the lag exceeds the slack. A
straight line over that comes first, the regressor learns what is left: the batch, the processing,
the time of day. So far from all points the estimate is still a reasonable one.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from laxity.core.history import Point, Points
from laxity.core.operators import Operator
from laxity.core.regressors import GaussianProcess, Regressor

Floats = NDArray[np.float64]
Make = Callable[[int], Regressor]  # a new regressor for a seed

SECOND_US = 1_000_000
DAY_S = 86_400
FEW_POINTS = 5  # with fewer there is nothing to learn
PULL = 0.02  # how strongly the line is drawn to slope 1, in square seconds or shares
FASTEST, SLOWEST = 1e6, 1e-3  # event time per time on the clock
COLUMN = {name: n for n, name in enumerate(Point._fields)}


def table(points: Points) -> Floats:
    """Points as rows of numbers."""
    return np.array(points, np.float64).reshape(len(points), len(COLUMN))


def features(rows: Floats, operator: Operator) -> Floats:
    """Eq. 6, then lag and rows per second.

    >>> noon = Point(43_261 * SECOND_US, SECOND_US, SECOND_US, 3_000_000, 0, 2_000_000, 500, 0, 0)
    >>> features(table((noon,)), Operator(threads=2, window_us=5_000_000)).tolist()
    [[3.0, 12.0, 1.0, 1.0, 2.0, 5.0, 2.0, 500.0]]
    """
    day_s = rows[:, COLUMN["at_us"]] / SECOND_US % DAY_S
    same = np.ones(len(rows))
    return np.column_stack(
        [
            rows[:, COLUMN["slack_us"]] / SECOND_US,
            day_s // 3600,
            day_s % 3600 // 60,
            day_s % 60 // 1,
            same * operator.threads,
            same * operator.window_us / SECOND_US,
            rows[:, COLUMN["lag_high_us"]] / SECOND_US,
            _per_s(rows, "n_rows"),
        ]
    )


def pace(points: Points) -> float:
    """How far event time moves in a second on the clock, to two digits; 1 if it stood still.

    >>> pace((Point(0, 1_000, 2_013, 0, 0, 0, 0, 0, 0),))
    2.0
    """
    moved, took = (sum(getattr(one, name) for one in points) for name in ("moved_us", "took_us"))
    return float(f"{min(max(moved / took, SLOWEST), FASTEST):.2g}") if moved else 1.0


def waits_s(rows: Floats, event_pace: float = 1.0) -> Floats:
    """How long by the clock a row waits, as the definitions have it: slack or lag.

    >>> waits_s(table((Point(0, 1, 2, 3_000_000, 0, 8_000_000, 0, 0, 0),)), event_pace=2.0).tolist()
    [1.5]
    """
    wait_us = np.minimum(rows[:, COLUMN["slack_us"]], rows[:, COLUMN["lag_high_us"]])
    return wait_us / event_pace / SECOND_US


def early_per_s(rows: Floats) -> Floats:
    """How many rows a second would be read early, were they all of the quicker sources.

    The lag is taken to go evenly from its lowest to its highest.

    >>> half = Point(0, 1_000_000, 1, 3_000_000, 2_000_000, 4_000_000, 500, 0, 0)
    >>> early_per_s(table((half,))).tolist()
    [250.0]
    """
    low, high, slack = (rows[:, COLUMN[name]] for name in ("lag_low_us", "lag_high_us", "slack_us"))
    share = np.clip((high - slack) / np.maximum(high - low, 1.0), 0, 1)
    return _per_s(rows, "n_rows") * share


def _per_s(rows: Floats, name: str) -> Floats:
    return np.asarray(rows[:, COLUMN[name]] / rows[:, COLUMN["took_us"]] * SECOND_US, np.float64)


@dataclass(frozen=True)
class Learned:
    """A line over what is known, and a regressor for what is left."""

    offset: float
    slope: float
    rest: Regressor

    def predict(self, known: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation."""
        mean, std = self.rest.predict(x)
        return self.offset + self.slope * known + mean, std


def learned(known: Floats, x: Floats, y: Floats, rest: Regressor) -> Learned:
    """Learn `y`; where the points do not tell, it grows as fast as what is known."""
    unit = max(float(np.abs(known).max()), 1.0)
    a, b = (known - known.mean()) / unit, (y - y.mean()) / unit
    slope = max(float((np.mean(a * b) + PULL**2) / (np.mean(a * a) + PULL**2)), 0.0)
    offset = float(y.mean() - slope * known.mean())
    rest.fit(x, y - offset - slope * known)
    return Learned(offset, slope, rest)


@dataclass(frozen=True)
class Model:
    """The two models of one operator; `upto_us` tells them from older and newer ones."""

    latency: Learned
    early: Learned
    operator: Operator
    pace: float
    upto_us: int

    def latency_s(self, rows: Floats) -> tuple[Floats, Floats]:
        """The longest latency in each row's situation, and how unsure that is."""
        return self.latency.predict(waits_s(rows, self.pace), features(rows, self.operator))

    def early_per_s(self, rows: Floats) -> Floats:
        """Rows read early a second in each row's situation."""
        x = features(rows, self.operator)
        mean, _ = self.early.predict(early_per_s(rows), x)
        return np.maximum(mean, 0.0)


class Fitting(Protocol):
    """How models are made of points."""

    def latest(self, name: str, operator: Operator, points: Points) -> Model | None:
        """The newest model there is of an operator; None if there is none yet."""


@dataclass(frozen=True)
class FitNow:
    """Fits at once, and remembers: the same points and seed always give the same model."""

    seed: int = 0
    make: Make = GaussianProcess

    def latest(self, name: str, operator: Operator, points: Points) -> Model | None:
        """The model of just these points; None if they are too few."""
        return None if len(points) < FEW_POINTS else _fitted(operator, points, self.seed, self.make)


class FitInBackground:
    """Fits elsewhere: asked for a model it gives the last one that is finished.

    `executor` does the work; a query ends it. One fit is under way at a time, the newest points
    are taken when it is done.
    """

    def __init__(self, executor: Executor, fitting: FitNow) -> None:
        self._executor, self._fitting = executor, fitting
        self._jobs: dict[str, tuple[Points, Future[Model | None] | None]] = {}
        self._done: dict[str, Model | None] = {}

    def latest(self, name: str, operator: Operator, points: Points) -> Model | None:
        """The last model of the operator that is finished; a newer one is begun if there is cause.

        An error in a fit is raised here.
        """
        asked, job = self._jobs.get(name, ((), None))
        if job is not None and job.done():
            self._done[name], job = job.result(), None
            self._jobs[name] = asked, None
        if job is None and asked != points:
            work = self._executor.submit(self._fitting.latest, name, operator, points)
            self._jobs[name] = points, work
        return self._done.get(name)


@lru_cache(maxsize=64)
def _fitted(operator: Operator, points: Points, seed: int, make: Make) -> Model:
    rows = table(points)
    x = features(rows, operator)
    latency_s = rows[:, COLUMN["latency_us"]] / SECOND_US
    event_pace = pace(points)
    return Model(
        latency=learned(waits_s(rows, event_pace), x, latency_s, make(seed)),
        early=learned(early_per_s(rows), x, _per_s(rows, "n_slack"), make(seed)),
        operator=operator,
        pace=event_pace,
        upto_us=points[-1].at_us,
    )
