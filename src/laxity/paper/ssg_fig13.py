"""Slack-ScaleGate, Fig. 13: slack rules when a source falls behind for good.

Each bus row adds 1 ms to the delay of those after it, so the buses fall behind by a third of a
second each second. The deadline is 35 s: from about 100 s on it can only be kept by reading early,
and as the lag then exceeds the window of the join, hardly any events are left to detect. How it is
run, and what differs from the paper, is said in `slack_rules`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from laxity.paper import slack_rules
from laxity.paper.figure import Told, untold
from laxity.paper.result import Claim, Result, Row, Scale
from laxity.paper.slack_rules import Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _setup(seconds: int) -> Setup:
    return Setup(seconds, warm_s=30, delay="growing:1ms", deadline_s=35, low_s=5, high_s=120)


SCALES: dict[Scale, Setup] = {"quick": _setup(150), "full": _setup(300)}


def run(scale: Scale, seed: int, told: Told = untold) -> list[Row]:
    """A row per rule and second."""
    return slack_rules.measure(SCALES[scale], seed, told)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says of Fig. 13."""
    return slack_rules.claims(rows)


def plot(result: Result, canvas: "Figure") -> None:
    """Latency, slack, slack-ready rows and events over time."""
    slack_rules.plot(result, canvas, "Slack-ScaleGate, Fig. 13")
