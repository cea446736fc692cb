"""Set the slacks of a query so that its deadline holds and few rows are read early (SLTuner).

Once a period (a second, or a batch if that is longer) the tuner adds what came of the slacks in
force to its points, makes new models every few points, and lets `laxity.core.decision` decide.

Cold, with too few points for a model, rows wait for half of what `alpha` leaves of the deadline,
shared by the merges of one path: early enough that there is room to grow into.

It does not swing. Slacks are chosen for 96 % of the deadline and given up at 100 %. They are raised
only while rows are read early, by a twentieth of the deadline at least, not before the last raise
has had its effect, and not for a minute after a cut. Periods a change falls into teach nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from laxity.core.decision import Coming, Terms, Tuning, decide
from laxity.core.estimator import FitNow, Fitting, table
from laxity.core.history import PERIOD_US, Points, Watch, points_of, thinned, watch_from
from laxity.core.operators import Graph
from laxity.core.slack import Memory, Seen
from laxity.durations import show_us
from laxity.errors import ConfigError

TUNING = "tuning"  # where a memory has the last decision
REFIT_AFTER = 10  # points of each operator; at once when the deadline was missed
PATIENCE_US = 60 * PERIOD_US  # after a cut, before anything is raised


@dataclass(frozen=True)
class Tuner:
    """Keeps a deadline for all merges of a graph. Its memory is made of JSON values.

    `history` are points from earlier runs. `fitting` makes models of points: at once by default,
    elsewhere with `laxity.core.estimator.FitInBackground`.
    """

    graph: Graph
    deadline_us: int
    alpha: float = 0.5
    fitting: Fitting = field(default_factory=FitNow)
    history: Mapping[str, Points] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.deadline_us <= 0:
            raise ConfigError(f"deadline must be > 0, got {show_us(self.deadline_us)}")
        if not 0 < self.alpha < 1:
            raise ConfigError(f"alpha must lie in (0, 1), got {self.alpha}")

    @property
    def _terms(self) -> Terms:
        return Terms(self.deadline_us, self.alpha)

    def next(self, memory: Memory, seen: Mapping[str, Seen]) -> tuple[dict[str, int], Memory]:
        """The slack of every merge after one more batch, and the memory for next time.

        `seen` has every operator of the graph; one that does not merge has a latency and rows.
        """
        if not memory:
            memory = self._cold(seen)
        watches = {name: Watch(*memory["watches"][name]).plus(one) for name, one in seen.items()}
        now_us = max(one.now_us for one in seen.values())
        memory = memory | {"watches": _listed(watches)}
        if now_us - min(one.from_us for one in watches.values()) >= PERIOD_US:
            memory = self._learn(memory, watches, now_us)
            memory = self._decide(memory, watches, now_us)
            memory |= {"watches": _listed({name: watch_from(one) for name, one in seen.items()})}
        return dict(memory["slacks_us"]), memory

    def cold_us(self) -> dict[str, int]:
        """The slacks while nothing is known."""
        share = (1 - self.alpha) / 2 / self.graph.most_merges()
        return dict.fromkeys(self.graph.merges, int(self.deadline_us * share))

    def _cold(self, seen: Mapping[str, Seen]) -> Memory:
        """Nothing known but what history tells."""
        slacks_us = self.cold_us()
        points = {
            name: [list(one) for one in thinned(tuple(self.history.get(name, ())))]
            for name in self.graph.operators
        }
        return {
            "slacks_us": slacks_us,
            "watches": _listed({name: watch_from(one) for name, one in seen.items()}),
            "points": points,
            "fitted": points,
            "n_new": 0,
            "models": {},
            "settled_us": 0,
            "raise_us": 0,
            TUNING: Tuning(slacks_us=slacks_us).model_dump(),
        }

    def _learn(self, memory: Memory, watches: Mapping[str, Watch], now_us: int) -> Memory:
        """Add the period's points, and fit to all of them if it is time for new models."""
        points, n_new, missed = dict(memory["points"]), memory["n_new"], False
        for name, watch in watches.items():
            point = watch.point(memory["slacks_us"].get(name, 0), now_us)
            if point is not None and watch.from_us >= memory["settled_us"]:
                points[name] = [list(one) for one in thinned((*points_of(points[name]), point))]
                missed = missed or point.latency_us > self.deadline_us
                n_new += 1
        if missed or n_new >= REFIT_AFTER * len(watches):
            return memory | {"points": points, "fitted": points, "n_new": 0}
        return memory | {"points": points, "n_new": n_new}

    def _decide(self, memory: Memory, watches: Mapping[str, Watch], now_us: int) -> Memory:
        """The slacks for the period to come."""
        slacks_us = memory["slacks_us"]
        coming = {
            name: self._coming(memory["fitted"][name], name, watch, slacks_us.get(name, 0), now_us)
            for name, watch in watches.items()
        }
        known = {name: one for name, one in coming.items() if one is not None}
        if len(known) < len(self.graph.operators):
            return memory | {TUNING: Tuning(slacks_us=slacks_us).model_dump()}
        models = {name: one.model.upto_us for name, one in known.items()}
        learned, memory = models != memory["models"], memory | {"models": models}
        tuning = decide(self._terms, self.graph, slacks_us, known, learned)
        if not tuning.changed:
            return memory | {TUNING: tuning.model_dump()}
        raised_us = sum(tuning.slacks_us.values()) - sum(slacks_us.values())
        if raised_us > 0 and now_us < memory["raise_us"]:
            early = {"slacks_us": slacks_us, "changed": False, "why": "too soon to raise the slack"}
            return memory | {TUNING: tuning.model_copy(update=early).model_dump()}
        pace = min(one.model.pace for one in known.values())
        settled_us = now_us + PERIOD_US + int(max(raised_us, 0) / pace)
        return memory | {
            "slacks_us": tuning.slacks_us,
            "settled_us": settled_us,
            "raise_us": settled_us if raised_us > 0 else now_us + PATIENCE_US,
            TUNING: tuning.model_dump(),
        }

    def _coming(
        self, fitted: list[list[int]], name: str, watch: Watch, slack_us: int, now_us: int
    ) -> Coming | None:
        """The operator in the period to come, which is like the last; None without a model.

        The lag may grow by as much as event time moves: more than that no source can fall behind.
        """
        model = self.fitting.latest(name, self.graph.operators[name], points_of(fitted))
        last = watch._replace(latency_us=max(watch.latency_us, 0)).point(slack_us, now_us)
        if model is None or last is None:
            return None
        soon = last._replace(
            at_us=last.at_us + last.moved_us,
            lag_low_us=last.lag_high_us,
            lag_high_us=last.lag_high_us + last.moved_us,
        )
        return Coming(model, table((soon,)))


def tuning_of(memory: Memory) -> Tuning:
    """The last decision a tuner remembers, with its reason."""
    return Tuning.model_validate(memory[TUNING])


def _listed(watches: Mapping[str, Watch]) -> dict[str, Any]:
    return {name: list(watch) for name, watch in watches.items()}
