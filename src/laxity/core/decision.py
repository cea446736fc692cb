"""Trigger and optimizer of the tuner: whether the slacks in force will do, and which are better.

Two predictions are asked of the models for the period to come: how long results will take as things
go, and how long at worst, should the slowest source stall so that every row waits for its whole
slack. Laxity is what then is left of the deadline (Slack-ScaleGate, §5.2.2). There is cause to act

- on a *violation*: at worst no laxity is left (eq. 9). The search goes up from no slack at all;
- if there is *room*: as things go the laxity is at least `alpha` of the deadline (eq. 10). The
  search goes up from the slacks in force;
- if something was *learned*, which the seed does not have: the models are new. Likewise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from laxity.core.estimator import COLUMN, SECOND_US, Floats, Model
from laxity.core.operators import Graph
from laxity.core.optimizer import N_STEPS, Curve, Hill, Places, best_of, curve

Fired = Literal["cold", "violation", "room", "learned", "none"]
Slacks = dict[str, int]

DEVIATIONS = 2.0  # latency is taken to be so many standard deviations longer than the mean
AIM = 0.96  # of the deadline: what slacks are chosen for
LEAST_RAISE = N_STEPS // 20
LEAST_EARLY = 0.01  # of the rows: with fewer read early there is nothing to gain


class Tuning(BaseModel):
    """A decision and its reason: which condition fired, and what the models say of the slacks.

    Latencies are from end to end, on the safe side: `worst_s` should the slowest source stall,
    `expected_s` as things go. `early_per_s` are the rows read early a second. None without models.
    """

    model_config = ConfigDict(frozen=True)

    slacks_us: Slacks
    fired: Fired = "cold"
    why: str = "too few points for a model"
    changed: bool = False
    worst_s: float | None = None
    expected_s: float | None = None
    early_per_s: float | None = None
    n_evaluated: int = 0


@dataclass(frozen=True)
class Terms:
    """What is to be kept: the deadline, and the share of it that counts as room."""

    deadline_us: int
    alpha: float


@dataclass(frozen=True)
class Coming:
    """One operator in the period to come: its model, and the situation as a row of numbers."""

    model: Model
    row: Floats

    def with_slacks(self, slacks_us: Floats) -> Floats:
        """The situation with each slack."""
        rows = np.repeat(self.row, len(slacks_us), axis=0)
        rows[:, COLUMN["slack_us"]] = slacks_us
        return rows

    def latency_us(self, rows: Floats) -> Floats:
        """How long results take, on the safe side."""
        mean_s, std_s = self.model.latency_s(rows)
        return np.maximum(mean_s + DEVIATIONS * std_s, 0.0) * SECOND_US

    def curve(self, slacks_us: Floats) -> Curve:
        """Latency at worst and rows read early, for each slack."""
        rows = self.with_slacks(slacks_us)
        return curve(self.latency_us(stalled(rows)), self.model.early_per_s(rows))


def stalled(rows: Floats) -> Floats:
    """The same, should the slowest source fall behind by all the slack there is."""
    lag, slack = COLUMN["lag_high_us"], COLUMN["slack_us"]
    rows = rows.copy()
    rows[:, lag] = np.maximum(rows[:, lag], rows[:, slack])
    return rows


def decide(
    terms: Terms, graph: Graph, slacks_us: Slacks, coming: Mapping[str, Coming], learned: bool
) -> Tuning:
    """The slacks for the period to come; `learned` says that the models are new."""
    now = predicted(graph, slacks_us, coming)
    fired = _fired(terms, now, learned)
    if fired == "none":
        return now.model_copy(update={"why": "the deadline holds, with little to spare"})
    grids = {
        name: np.linspace(0, terms.deadline_us * coming[name].model.pace, N_STEPS + 1)
        for name in slacks_us
    }
    start: Places = {
        name: 0 if fired == "violation" else int(np.searchsorted(grids[name], us, "right")) - 1
        for name, us in slacks_us.items()
    }
    no_slack = np.zeros(1)
    curves = {name: one.curve(grids.get(name, no_slack)) for name, one in coming.items()}
    found = best_of(Hill(graph, curves), start, AIM * terms.deadline_us)
    chosen_us = {name: int(grids[name][place]) for name, place in found.places.items()}
    chosen = predicted(graph, chosen_us, coming).model_copy(
        update={"fired": fired, "changed": chosen_us != slacks_us, "n_evaluated": found.n_evaluated}
    )
    if fired == "violation":
        even = "at worst the deadline would be missed" + (
            "" if found.keeps else ", even without slack"
        )
        return chosen.model_copy(update={"why": even})
    early = now.early_per_s or 0.0
    raised = sum(found.places.values()) - sum(start.values())
    if early >= LEAST_EARLY * _rows_per_s(coming) and raised >= LEAST_RAISE:
        fewer = f"{early:.0f} rows a second would be read early, now {chosen.early_per_s:.0f}"
        return chosen.model_copy(update={"why": fewer})
    return now.model_copy(update={"fired": fired, "why": "more slack would gain too little"})


def predicted(graph: Graph, slacks_us: Slacks, coming: Mapping[str, Coming]) -> Tuning:
    """What slacks would give (eqs. 2 and 5)."""
    worst_us, expected_us, early_per_s = {}, {}, 0.0
    for name, one in coming.items():
        rows = one.with_slacks(np.array([slacks_us.get(name, 0)], np.float64))
        worst_us[name] = float(one.latency_us(stalled(rows))[0])
        expected_us[name] = float(one.latency_us(rows)[0])
        early_per_s += float(one.model.early_per_s(rows)[0])
    return Tuning(
        slacks_us=dict(slacks_us),
        fired="none",
        why="",
        worst_s=graph.longest(worst_us) / SECOND_US,
        expected_s=graph.longest(expected_us) / SECOND_US,
        early_per_s=early_per_s,
    )


def _rows_per_s(coming: Mapping[str, Coming]) -> float:
    return sum(
        float(one.row[0, COLUMN["n_rows"]] / one.row[0, COLUMN["took_us"]]) * SECOND_US
        for one in coming.values()
    )


def _fired(terms: Terms, now: Tuning, learned: bool) -> Fired:
    """Which condition holds for the slacks in force."""
    deadline_s = terms.deadline_us / SECOND_US
    if now.worst_s is not None and deadline_s - now.worst_s <= 0:
        return "violation"
    if now.expected_s is not None and deadline_s - now.expected_s >= terms.alpha * deadline_s:
        return "room"
    return "learned" if learned else "none"
