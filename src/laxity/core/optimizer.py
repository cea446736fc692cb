"""Find the slacks of all operators that read the fewest rows early and keep the deadline.

Greedy hill climbing (Slack-ScaleGate, §5.2.3): from a start, take the step that saves the most
rows and keeps the deadline, until no step does. Beyond the seed: steps begin long and get shorter;
of equal steps the larger slack wins, since waiting longer never reads more rows early; and one
merge may give up what another needs. The slacks of a merge are the places of a `Curve`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from laxity.core.operators import Graph

Floats = NDArray[np.float64]
Places = dict[str, int]

N_STEPS = 128  # of a merge's slack, a power of two
FIRST_STEP = 32


@dataclass(frozen=True)
class Curve:
    """One operator at each of its slacks: its latency, and the rows it reads early a second.

    A merge has `N_STEPS` + 1 slacks, another operator has one place.
    """

    latency_us: Floats
    early_per_s: Floats


@dataclass(frozen=True)
class Found:
    """An answer: the place of each merge, what it gives, and how often the graph was evaluated."""

    places: Places
    latency_us: float
    early_per_s: float
    keeps: bool
    n_evaluated: int


def curve(latency_us: Floats, early_per_s: Floats) -> Curve:
    """A curve as it must be: waiting longer is never quicker and never reads more rows early.

    >>> curve(np.array([1.0, 0.9, 2.0]), np.array([5.0, 6.0, 3.0]))
    Curve(latency_us=array([1., 1., 2.]), early_per_s=array([5., 5., 3.]))
    """
    return Curve(np.maximum.accumulate(latency_us), np.minimum.accumulate(early_per_s))


class Hill:
    """The graph with a curve for every operator; evaluates no place twice."""

    def __init__(self, graph: Graph, curves: Mapping[str, Curve]) -> None:
        self._graph, self._curves = graph, curves
        self._known: dict[tuple[int, ...], tuple[float, float]] = {}

    @property
    def n_evaluated(self) -> int:
        """How often the graph was evaluated."""
        return len(self._known)

    def at(self, places: Places) -> tuple[float, float]:
        """The latency from end to end, and all rows read early (eqs. 2 and 5)."""
        key = tuple(places.values())
        if key not in self._known:
            self._known[key] = self._evaluated(places)
        return self._known[key]

    def _evaluated(self, places: Places) -> tuple[float, float]:
        latency, early = {}, 0.0
        for name, its in self._curves.items():
            place = places.get(name, 0)
            latency[name] = float(its.latency_us[place])
            early += float(its.early_per_s[place])
        return self._graph.longest(latency), early


def best_of(hill: Hill, start: Places, limit_us: float) -> Found:
    """The best of several climbs: from `start`, and from there with each merge in turn as high as
    it may go. One climb alone ends too low where rows are saved only beyond a long flat stretch.

    If the start itself is over the limit it is the answer, and `keeps` is false.
    """
    found = climb(hill, start, limit_us)
    if not found.keeps or len(start) == 1:
        return found
    others = [climb(hill, _highest(hill, start, name, limit_us), limit_us) for name in start]
    best = min([found, *others], key=lambda one: _better(hill, one.places))
    return replace(best, n_evaluated=hill.n_evaluated)


def climb(hill: Hill, start: Places, limit_us: float) -> Found:
    """The best slacks that steps from `start` lead to, within the limit."""
    latency_us, early = hill.at(start)
    if latency_us >= limit_us:
        return Found(start, latency_us, early, False, hill.n_evaluated)
    places, before = start, None
    while places != before:  # steps that led nowhere may lead somewhere from here
        before, step = places, FIRST_STEP
        while step:
            best = min(_allowed(hill, places, step, limit_us), key=lambda one: _better(hill, one))
            if _better(hill, best) < _better(hill, places):
                places = best
            else:
                step //= 2
    return Found(places, *hill.at(places), True, hill.n_evaluated)


def _allowed(hill: Hill, places: Places, step: int, limit_us: float) -> list[Places]:
    """Here, and where a step leads within the limit."""
    return [
        places,
        *(tried for tried in _neighbours(places, step) if hill.at(tried)[0] < limit_us),
    ]


def _highest(hill: Hill, start: Places, name: str, limit_us: float) -> Places:
    """One merge as high as it may go."""
    low, high = start[name], N_STEPS
    while low < high:
        middle = (low + high + 1) // 2
        if hill.at(start | {name: middle})[0] < limit_us:
            low = middle
        else:
            high = middle - 1
    return start | {name: low}


def _better(hill: Hill, places: Places) -> tuple[float, int]:
    """What is to be small: rows a second, in thousandths; then what slack is not used."""
    return round(hill.at(places)[1], 3), -sum(places.values())


def _neighbours(places: Places, step: int) -> Iterator[Places]:
    """One merge a step up; or one up and another down."""
    for up in places:
        if places[up] == N_STEPS:
            continue
        raised = places | {up: min(places[up] + step, N_STEPS)}
        yield raised
        for down in places:
            if down != up and places[down]:
                yield raised | {down: max(places[down] - step, 0)}
