"""Slack rules on the same streams: what Figs. 12 and 13 of Slack-ScaleGate have in common.

The traffic join is run on the virtual clock under each rule. A batch begins every 0.5 s, or when
the last is done; it takes 0.1 s and 0.1 ms for each row it reads. Latency is from a row's arrival
until its batch is done: waiting, batch and processing. An interval of a second misses the deadline
if one row in it took longer. A run ends with its last second; rows still held then count nowhere.

A rule *keeps* the deadline if no more than 1 % of the intervals after warm-up miss it.

SLTuner starts cold here: it has no history of earlier runs, as the paper's has. It also acts
earlier: a slack is judged by what happens should the slow source stall altogether, so it need not
be cut when that source falls behind, which the paper's does. What TCP is driven by is not in the
paper; here it is the slowest row of each batch. That goes up and down all the time, so TCP halves
its slack so often that it keeps the deadline, far below it, and reads the more rows early.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from laxity.core.merge import MergeTerms
from laxity.core.release import SLACK
from laxity.core.slack import Fixed, MaxDelay, Quantile, SlackRule, Tcp
from laxity.core.tuned import Tuned
from laxity.paper.figure import Told, untold
from laxity.paper.result import Claim, Result, Row, column, where
from laxity.paper.ssg_fig4 import detected
from laxity.sim import merge
from laxity.sim.workload.columns import SECOND_US, START_US, Columns
from laxity.sim.workload.traffic import bus, scats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Ints = NDArray[np.int64]

KEEPS = 0.01  # of the intervals may miss
CUTS = ("cuts", "cuts_on_rise", "cuts_on_miss")
LOW, HIGH, MAX, TCP, QUANTILE, TUNER = (
    "Static Low",
    "Static High",
    "Max Timestamp",
    "TCP",
    "Quantile",
    "SLTuner",
)


@dataclass(frozen=True)
class Setup:
    """One delay policy of the buses, one deadline, and the static slacks."""

    seconds: int
    warm_s: int
    delay: str
    deadline_s: int
    low_s: int
    high_s: int
    rate_per_s: float = 500
    window_s: int = 5
    batch_every_ms: int = 500
    batch_takes_ms: int = 100
    row_takes_us: int = 100


def rules(setup: Setup, seed: int) -> dict[str, SlackRule]:
    """The rules of the paper, and that of other engines."""
    return {
        LOW: Fixed(f"{setup.low_s}s"),
        HIGH: Fixed(f"{setup.high_s}s"),
        MAX: MaxDelay(),
        TCP: Tcp(),
        QUANTILE: Quantile(),
        TUNER: Tuned(f"{setup.deadline_s}s", seed=seed, window=f"{setup.window_s}s"),
    }


def measure(setup: Setup, seed: int, told: Told = untold) -> list[Row]:
    """A row per rule and second."""
    sources = {
        "bus": bus(seed, seconds=setup.seconds, rate_per_s=setup.rate_per_s, delay=setup.delay),
        "scats": scats(seed, seconds=setup.seconds, rate_per_s=setup.rate_per_s),
    }
    sources = {name: _until(columns, setup) for name, columns in sources.items()}
    lag_s = _lag_s(sources["bus"], setup)
    rows: list[Row] = []
    racing = rules(setup, seed)
    for done, (name, rule) in enumerate(racing.items()):
        told(done / len(racing), name)
        shown = _shown(sources, rule, setup)
        for n in range(setup.seconds):
            place: Row = {"rule": name, "from_s": n, "warm": n >= setup.warm_s, "lag_s": lag_s[n]}
            rows.append(place | {key: values[n] for key, values in shown.items()})
    return rows


def _until(columns: Columns, setup: Setup) -> Columns:
    """What arrives before the run ends."""
    arrived = columns["arrival_us"] < START_US + setup.seconds * SECOND_US
    return {name: column[arrived] for name, column in columns.items()}


def _shown(sources: dict[str, Columns], rule: SlackRule, setup: Setup) -> dict[str, list[float]]:
    """What the operator shows in each second under one rule."""
    cost = merge.Cost(setup.batch_takes_ms * 1_000, setup.row_takes_us)
    reads = merge.run(sources, MergeTerms(rule), setup.batch_every_ms * 1_000, cost=cost)
    n, when = setup.seconds, _second(reads.done_us, setup)
    longest_us = np.zeros(n, np.int64)
    np.maximum.at(longest_us, when, reads.latency_us)
    slack_us = np.zeros(n, np.int64)
    slack_us[_second(reads.batches[:, 0], setup)] = reads.batches[:, 2]
    events = np.bincount(when[detected(sources, reads, setup.window_s * SECOND_US)], minlength=n)
    return {
        "latency_s": _means(when, reads.latency_us / SECOND_US, n),
        "latency_max_s": (longest_us / SECOND_US).tolist(),
        "missed": (longest_us > setup.deadline_s * SECOND_US).tolist(),
        "slack_s": (slack_us / SECOND_US).tolist(),
        "slack_read": np.bincount(when[reads.mark == SLACK], minlength=n).tolist(),
        "events": events.tolist(),
        "events_so_far": np.cumsum(events).tolist(),
    } | _cuts(reads, setup)


def _cuts(reads: merge.Reads, setup: Setup) -> dict[str, list[float]]:
    """How often the slack was cut in each second: in all, after latency rose, after a miss."""
    latency_us = np.zeros(len(reads.batches), np.int64)
    batch = np.searchsorted(reads.batches[:, 0], reads.read_us)
    np.maximum.at(latency_us, batch, reads.latency_us)
    cut = np.flatnonzero(np.diff(reads.batches[:, 2]) < 0) + 1
    rose = cut[(cut >= 2) & (latency_us[cut - 1] > latency_us[cut - 2])]  # noqa: PLR2004
    missed = cut[latency_us[cut - 1] > setup.deadline_s * SECOND_US]
    second = _second(reads.batches[:, 0], setup)
    return {
        name: np.bincount(second[which], minlength=setup.seconds).tolist()
        for name, which in zip(CUTS, (cut, rose, missed), strict=True)
    }


def _lag_s(columns: Columns, setup: Setup) -> list[float]:
    """How far behind the rows were that arrived in each second, on average."""
    lag_s = (columns["arrival_us"] - columns["event_us"]) / SECOND_US
    return _means(_second(columns["arrival_us"], setup), lag_s, setup.seconds)


def _second(at_us: Ints, setup: Setup) -> Ints:
    return np.minimum((at_us - START_US) // SECOND_US, setup.seconds - 1)


def _means(second: Ints, values: NDArray[np.float64], n: int) -> list[float]:
    counts = np.maximum(np.bincount(second, minlength=n), 1)
    means: list[float] = (np.bincount(second, values, minlength=n) / counts).tolist()
    return means


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says of Figs. 12 and 13."""
    names = list(dict.fromkeys(str(row["rule"]) for row in rows))
    of = {name: where(rows, rule=name) for name in names}
    warm = {name: where(mine, warm=True) for name, mine in of.items()}
    missed = {name: float(np.mean(column(mine, "missed"))) for name, mine in warm.items()}
    keep = [name for name in names if missed[name] <= KEEPS]
    early = {name: int(sum(column(of[name], "slack_read"))) for name in keep}
    events = {name: int(sum(column(of[name], "events"))) for name in keep}
    return [
        _keeps(missed),
        *(_violates(name, missed[name]) for name in (HIGH, MAX)),
        Claim(
            claim="of the rules that keep it, SLTuner reads the fewest slack-ready rows",
            paper="fewer than Static Low; the others violate it or react too late",
            ours=_told(early),
            holds=TUNER in early and early[TUNER] == min(early.values()),
        ),
        Claim(
            claim="of the rules that keep it, SLTuner detects the most events",
            paper="Static Low misses more events",
            ours=_told(events),
            holds=TUNER in events and events[TUNER] == max(events.values()),
        ),
        _reacts(warm[TCP], warm[TUNER]),
    ]


def _keeps(missed: dict[str, float]) -> Claim:
    return Claim(
        claim="after warm-up SLTuner violates the deadline in no more than 1 % of intervals",
        paper="satisfies the deadline",
        ours=f"violated in {missed[TUNER]:.1%} of them; "
        + ", ".join(f"{name} {share:.1%}" for name, share in missed.items() if name != TUNER),
        holds=missed[TUNER] <= KEEPS,
    )


def _violates(name: str, share: float) -> Claim:
    return Claim(
        claim=f"{name} violates the deadline",
        paper="violates it in periods of high delay",
        ours=f"in {share:.1%} of the intervals",
        holds=share > KEEPS,
    )


def _reacts(*of: list[Row]) -> Claim:
    """TCP's cuts come after what they answer; SLTuner needs none that do."""
    tcp, tuner = ({key: int(sum(column(rows, key))) for key in CUTS} for rows in of)
    return Claim(
        claim="TCP reacts after the fact, SLTuner does not have to",
        paper="TCP adjusts after the deadline has been violated, SLTuner before",
        ours=f"TCP: {tcp['cuts_on_rise']:,} of {tcp['cuts']:,} cuts follow a rise in latency; "
        f"SLTuner: {tuner['cuts_on_miss']} of {tuner['cuts']} cuts follow a miss",
        holds=0 < tcp["cuts"] == tcp["cuts_on_rise"] and not tuner["cuts_on_miss"],
    )


def _told(totals: dict[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in totals.items())


def plot(result: Result, canvas: "Figure", title: str) -> None:
    """Latency, slack, slack-ready rows and events over time, a line per rule."""
    axes = canvas.subplots(2, 2, sharex=True).ravel()
    deadline_s = result.config["deadline_s"]
    panels = {
        "latency_max_s": ("Latency", "slowest row (s)"),
        "slack_s": ("Slack", "slack (s)"),
        "slack_read": ("Slack-ready rows", "rows in 1 s"),
        "events_so_far": ("Events detected so far", "events"),
    }
    for panel, (name, (head, label)) in zip(axes, panels.items(), strict=True):
        for rule in dict.fromkeys(row["rule"] for row in result.rows):
            rows = where(result.rows, rule=rule)
            bold = {"linewidth": 2, "zorder": 3} if rule == TUNER else {"linewidth": 1}
            panel.plot(column(rows, "from_s"), column(rows, name), label=rule, **bold)
        panel.set(title=head, ylabel=label)
        panel.grid(alpha=0.3)
    axes[0].axhline(deadline_s, color="black", linestyle=":", label="deadline")
    for panel in axes[:2]:
        panel.set_ylim(0, 3 * deadline_s)
    for panel in axes[2:]:
        panel.set_xlabel("time (s)")
    lines, names = axes[0].get_legend_handles_labels()
    canvas.legend(lines, names, loc="outside lower center", ncols=7)
    canvas.suptitle(f"{title} ({result.scale}, seed {result.seed})")
