"""Slack-ScaleGate, Fig. 12: slack rules when a source is slow in periods.

The buses are delayed by the first policy: 20 s of Zipf(1.0) delays of up to 10 ms a row, then 50 s
of Zipf(0.35) of up to 2 ms, again and again, so that they fall up to 9 s behind and catch up. The
deadline is 6 s. How it is run, and what differs from the paper, is said in `slack_rules`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from laxity.paper import slack_rules
from laxity.paper.figure import Told, untold
from laxity.paper.result import Claim, Result, Row, Scale
from laxity.paper.slack_rules import Setup
from laxity.sim.workload.traffic import PERIODIC

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _setup(seconds: int) -> Setup:
    return Setup(seconds, warm_s=70, delay=PERIODIC, deadline_s=6, low_s=1, high_s=10)


SCALES: dict[Scale, Setup] = {"quick": _setup(140), "full": _setup(420)}


def run(scale: Scale, seed: int, told: Told = untold) -> list[Row]:
    """A row per rule and second."""
    return slack_rules.measure(SCALES[scale], seed, told)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says of Fig. 12."""
    return slack_rules.claims(rows)


def plot(result: Result, canvas: "Figure") -> None:
    """Latency, slack, slack-ready rows and events over time."""
    slack_rules.plot(result, canvas, "Slack-ScaleGate, Fig. 12")
