"""Slack-ScaleGate, Figs. 1–4: what waiting costs and what it saves.

The paper joins bus and SCATS reports of one area in a 5 s window while the bus stream is slowed
down in periods. Fig. 1 shows how far it falls behind. Then, by queueing threshold (our slack):
Fig. 2 the operator's latency, Fig. 3 the events it detects, Fig. 4 the rows it reads out of order.

Here a traffic workload of the same shape is read through the merge on the virtual clock. Latency
is how long a row was held between its arrival and its reading; computing takes no time there, so
what the paper's operator adds on top is not in it. An event is a bus over 120 s late and a flow
over 40 vehicles in one area. Out of order are the rows read behind a newer one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from laxity.core.join import joined
from laxity.core.merge import MergeTerms
from laxity.core.release import LATE, SLACK
from laxity.core.slack import Fixed
from laxity.paper.figure import Told, untold
from laxity.paper.result import Claim, Result, Row, Scale, Value, column, where
from laxity.sim import merge
from laxity.sim.workload.columns import SECOND_US, START_US, Columns
from laxity.sim.workload.traffic import bus, scats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Ints = NDArray[np.int64]

LATE_BUS_S = 120
HEAVY_FLOW = 40


@dataclass(frozen=True)
class Setup:
    """A period of the delays is 70 s. Thresholds rise; None waits for both sources, always."""

    seconds: int
    rate_per_s: float = 500
    batch_every_ms: int = 100
    interval_s: int = 5
    window_s: int = 5
    thresholds_s: tuple[float | None, ...] = (1, 3, 5, 10, None)


SCALES: dict[Scale, Setup] = {"quick": Setup(seconds=140), "full": Setup(seconds=420)}


def run(scale: Scale, seed: int, told: Told = untold) -> list[Row]:
    """A row per threshold and interval."""
    return measure(SCALES[scale], seed, told)


def measure(setup: Setup, seed: int, told: Told = untold) -> list[Row]:
    """The rows under any setup."""
    sources = {
        "bus": bus(seed, seconds=setup.seconds, rate_per_s=setup.rate_per_s),
        "scats": scats(seed, seconds=setup.seconds, rate_per_s=setup.rate_per_s),
    }
    lags = {f"{name}_lag_s": _lag_s(columns, setup) for name, columns in sources.items()}
    rows: list[Row] = []
    for done, threshold_s in enumerate(setup.thresholds_s):
        told(done / len(setup.thresholds_s), f"threshold {_name(threshold_s)}")
        seen = _seen(sources, threshold_s, setup)
        for n in range(_n_intervals(setup)):
            place: Row = {"threshold_s": threshold_s, "from_s": n * setup.interval_s}
            rows.append(place | {name: values[n] for name, values in (lags | seen).items()})
    return rows


def _seen(
    sources: dict[str, Columns], threshold_s: float | None, setup: Setup
) -> dict[str, list[float]]:
    """What the operator shows in each interval with one threshold."""
    slack = None if threshold_s is None else f"{threshold_s:g}s"
    reads = merge.run(sources, MergeTerms(Fixed(slack)), setup.batch_every_ms * 1_000)
    interval, n = _interval(reads.read_us, setup), _n_intervals(setup)
    late = np.bincount(interval[reads.mark == LATE], minlength=n)
    slack_read = np.bincount(interval[reads.mark == SLACK], minlength=n)
    when_us = reads.read_us[detected(sources, reads, setup.window_s * SECOND_US)]
    events = np.bincount(_interval(when_us, setup), minlength=n)
    longest_us = np.zeros(n, np.int64)
    np.maximum.at(longest_us, interval, reads.latency_us)
    return {
        "latency_s": _means(interval, reads.latency_us / SECOND_US, n),
        "latency_max_s": (longest_us / SECOND_US).tolist(),
        "events": events.tolist(),
        "events_so_far": np.cumsum(events).tolist(),
        "out_of_order": late.tolist(),
        "slack_read": slack_read.tolist(),
    }


def detected(sources: dict[str, Columns], reads: merge.Reads, window_us: int) -> Ints:
    """The reads that detect an event each: the later of its two rows."""
    area = np.empty_like(reads.row)
    for rank, columns in enumerate(sources.values()):
        mine = reads.source == rank
        area[mine] = columns["area"][reads.row[mine]]
    pairs = joined(reads.event_us, reads.source, area, window_us)
    late = sources["bus"]["delay_s"][reads.row[pairs.left]] > LATE_BUS_S
    heavy = sources["scats"]["flow"][reads.row[pairs.right]] > HEAVY_FLOW
    return np.maximum(pairs.left, pairs.right)[late & heavy]


def _lag_s(columns: Columns, setup: Setup) -> list[float]:
    """How far behind the rows were that arrived in each interval, on average."""
    lag_s = (columns["arrival_us"] - columns["event_us"]) / SECOND_US
    return _means(_interval(columns["arrival_us"], setup), lag_s, _n_intervals(setup))


def _n_intervals(setup: Setup) -> int:
    return -(-setup.seconds // setup.interval_s)


def _interval(at_us: Ints, setup: Setup) -> Ints:
    """The interval of each time; what comes after the end belongs to the last."""
    interval = (at_us - START_US) // (setup.interval_s * SECOND_US)
    return np.minimum(interval, _n_intervals(setup) - 1)


def _means(interval: Ints, values: NDArray[np.float64], n: int) -> list[float]:
    counts = np.maximum(np.bincount(interval, minlength=n), 1)
    means: list[float] = (np.bincount(interval, values, minlength=n) / counts).tolist()
    return means


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says of Figs. 1–4."""
    low, high = (where(rows, threshold_s=rows[n]["threshold_s"]) for n in (0, -1))
    return [_lag(low), _steady(low), _rises(high), _detects(rows), *_disorder(rows, low)]


def _lag(rows: Sequence[Row]) -> Claim:
    worst_s = max(column(rows, "bus_lag_s"))
    least_s = min(column(rows, "bus_lag_s"))
    return Claim(
        claim="the bus stream falls seconds behind in periods, and is level again between them",
        paper="about 7 s behind in the first 25 s",
        ours=f"{worst_s:.1f} s behind in the worst interval, {least_s:.2f} s in the best",
        holds=5 <= worst_s <= 9 and least_s < 1,  # noqa: PLR2004
    )


def _steady(rows: Sequence[Row]) -> Claim:
    bound_s = column(rows, "threshold_s")[0] * 1.2
    longest_s = max(column(rows, "latency_max_s"))
    return Claim(
        claim="with the smallest threshold latency stays steady, delay or not",
        paper="steady with a threshold of 1 s",
        ours=f"no row is held longer than {longest_s:.2f} s with {_name(rows[0]['threshold_s'])}",
        holds=longest_s <= bound_s,
    )


def _rises(rows: Sequence[Row]) -> Claim:
    calm, slow = (max(column(part, "latency_max_s")) for part in _calm_and_slow(rows))
    return Claim(
        claim="with the largest threshold latency rises in periods of high delay",
        paper="rises with the delay",
        ours=f"up to {slow:.1f} s in periods of high delay, {calm:.1f} s in the others",
        holds=slow >= 2 * calm,
    )


def _detects(rows: Sequence[Row]) -> Claim:
    events = _totals(rows, "events")
    counts = list(events.values())
    return Claim(
        claim="small thresholds detect fewer events",
        paper="fewer events the smaller the threshold",
        ours=_told(events),
        holds=counts == sorted(counts) and counts[0] < counts[-1],
    )


def _disorder(rows: Sequence[Row], low: Sequence[Row]) -> list[Claim]:
    late = _totals(rows, "out_of_order")
    counts = list(late.values())
    slow = sum(column(_calm_and_slow(low)[1], "out_of_order"))
    share = slow / max(counts[0], 1)
    return [
        Claim(
            claim="small thresholds read more rows out of order",
            paper="more rows the smaller the threshold",
            ours=_told(late),
            holds=counts == sorted(counts, reverse=True) and counts[0] > counts[-1],
        ),
        Claim(
            claim="rows are read out of order mostly in periods of high delay",
            paper="their number increases in periods of high delay",
            ours=f"{share:.0%} of them in the half of the intervals where the buses lag more",
            holds=share >= 0.8,  # noqa: PLR2004
        ),
    ]


def _calm_and_slow(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The intervals by the lag of the buses: the smaller half, and the larger."""
    order = np.argsort(column(rows, "bus_lag_s"), kind="stable").tolist()
    half = len(order) // 2
    return [rows[n] for n in order[:half]], [rows[n] for n in order[half:]]


def _totals(rows: Sequence[Row], name: str) -> dict[Value, int]:
    """The sum of a column by threshold, in the order of the rows: the smallest first."""
    thresholds = dict.fromkeys(row["threshold_s"] for row in rows)
    return {key: int(sum(column(where(rows, threshold_s=key), name))) for key in thresholds}


def _told(totals: dict[Value, int]) -> str:
    return ", ".join(f"{_name(key)}: {n:,}" for key, n in totals.items())


def _name(threshold_s: Value) -> str:
    return "without end" if threshold_s is None else f"{threshold_s:g} s"


def plot(result: Result, canvas: "Figure") -> None:
    """Four panels over time: lag, latency, events, rows out of order."""
    axes = canvas.subplots(2, 2, sharex=True).ravel()
    first = where(result.rows, threshold_s=result.rows[0]["threshold_s"])
    for source in ("bus", "scats"):
        axes[0].plot(column(first, "from_s"), column(first, f"{source}_lag_s"), label=source)
    axes[0].legend(loc="upper center", ncols=2)
    _panel(axes[0], "Fig. 1: how far the sources lag", "lag of arriving rows (s)")
    for key in _totals(result.rows, "events"):
        rows = where(result.rows, threshold_s=key)
        style = {"label": _name(key), "linestyle": "--" if key is None else "-"}
        for panel, name in enumerate(("latency_s", "events_so_far", "out_of_order"), start=1):
            axes[panel].plot(column(rows, "from_s"), column(rows, name), **style)
    _panel(axes[1], "Fig. 2: latency", "mean time held (s)")
    _panel(axes[2], "Fig. 3: events detected so far", "events")
    _panel(axes[3], "Fig. 4: rows read out of order", f"rows in {result.config['interval_s']} s")
    for panel in axes[2:]:
        panel.set_xlabel("time (s)")
    lines, names = axes[1].get_legend_handles_labels()
    canvas.legend(lines, names, loc="outside lower center", ncols=5, title="queueing threshold")
    canvas.suptitle(f"Slack-ScaleGate, Figs. 1–4 ({result.scale}, seed {result.seed})")


def _panel(axes: "Axes", title: str, label: str) -> None:
    axes.set_title(title)
    axes.set_ylabel(label)
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])
    axes.grid(alpha=0.3)
