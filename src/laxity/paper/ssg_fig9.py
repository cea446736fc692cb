"""Slack-ScaleGate, Figs. 9–10: rows processed and comparisons made, by number of nodes.

The paper runs the traffic join on Storm with 1 to 8 nodes, each of two writers sending 1,000 rows
a second for 400 s, and sees both numbers grow almost linearly.

Here nodes are simulated. All read the same merged stream, so each pays for reading every row; each
takes the areas that are its own and compares a row with those of the other side, same area, that
came up to 5 s before. A node does one thing at a time at the stated costs, which are chosen so that
eight nodes are still too few for the input. What a run shows is whether the price of one order for
all, every node reading every row, eats the gain. That nodes do not slow each other down otherwise
(network, memory) is assumed, not shown.

At full scale the join also runs on Spark with one core and with two, as fast as it can; its numbers
are what it would get done in the same time. There the growth is less than almost linear, 1.57 times
in one run: planning and closing a batch are the work of one thread, whatever the cores.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from laxity.core.delays import serial_us
from laxity.core.merge import MergeTerms
from laxity.core.slack import Fixed
from laxity.paper import on_spark
from laxity.paper.figure import Told, untold
from laxity.paper.result import Claim, Result, Row, Scale, column, where
from laxity.sim import merge
from laxity.sim.workload.columns import SECOND_US, START_US
from laxity.sim.workload.traffic import bus, scats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Ints = NDArray[np.int64]

NEARLY_LINEAR = 0.85  # of the ideal speed-up
NEGLIGIBLE = 0.05  # of a node's time


@dataclass(frozen=True)
class Setup:
    """Costs are a node's time: to read a row, to take one of its own, to compare it with one."""

    seconds: int
    nodes: tuple[int, ...]
    cores: tuple[int, ...] = ()
    seconds_on_spark: int = 2_000  # of rows, for some batches of a size that is worth a batch
    rate_per_s: float = 1_000
    areas: int = 64
    window_s: int = 5
    slack_s: int = 5
    read_us: int = 2
    take_us: int = 20
    compare_us: int = 60


SCALES: dict[Scale, Setup] = {
    "quick": Setup(seconds=60, nodes=(1, 2, 4, 8)),
    "full": Setup(seconds=400, nodes=tuple(range(1, 9)), cores=(1, 2)),
}


@dataclass(frozen=True)
class Stream:
    """The merged rows in the order every node reads them, from `start_us` on."""

    start_us: int
    read_us: Ints
    area: Ints
    comparisons: Ints


def run(scale: Scale, seed: int, told: Told = untold) -> list[Row]:
    """A row per number of nodes."""
    return measure(SCALES[scale], seed, told)


def measure(setup: Setup, seed: int, told: Told = untold) -> list[Row]:
    """The rows under any setup."""
    told(0, "the merged stream")
    stream = merged(setup, seed)
    rows = []
    for done, nodes in enumerate(setup.nodes):
        told(0.3 + 0.6 * done / len(setup.nodes), f"{nodes} nodes")
        rows.append(_simulated(stream, nodes, setup))
    for cores in setup.cores:
        told(0.9, f"Spark, {cores} cores")
        rows.append(_on_spark(cores, setup, seed))
    return _with_speedups(rows)


def _on_spark(cores: int, setup: Setup, seed: int) -> Row:
    """The same on Spark with so many cores, at the speed it has."""
    seconds = setup.seconds_on_spark
    speed = on_spark.measured(cores, seconds, setup.rate_per_s, setup.areas, seed)
    return {
        "engine": "spark",
        "nodes": cores,
        "offered": round(2 * seconds * setup.rate_per_s),
        "processed": round(speed.rows_per_s * setup.seconds),
        "comparisons": round(speed.comparisons_per_s * setup.seconds),
        "reading_share": None,
    }


def merged(setup: Setup, seed: int) -> Stream:
    """The sources read through a merge, and with how many others each row is compared.

    The rows of the first window are there to be compared with: nobody is timed on half-empty ones.
    """
    seconds = setup.seconds + setup.window_s
    sources = {
        make.__name__: make(
            seed,
            seconds=seconds,
            rate_per_s=setup.rate_per_s,
            areas=setup.areas,
            delay="constant:0s",
        )
        for make in (bus, scats)
    }
    terms = MergeTerms(Fixed(f"{setup.slack_s}s"))
    reads = merge.run(sources, terms, every_us=SECOND_US // 10)
    area = np.empty_like(reads.row)
    for rank, columns in enumerate(sources.values()):
        mine = reads.source == rank
        area[mine] = columns["area"][reads.row[mine]]
    comparisons = compared(reads.event_us, reads.source, area, setup.window_s * SECOND_US)
    start_us = START_US + setup.window_s * SECOND_US
    timed = reads.arrival_us >= start_us
    return Stream(start_us, reads.read_us[timed], area[timed], comparisons[timed])


def compared(event_us: Ints, side: Ints, area: Ints, within_us: int) -> Ints:
    """With how many earlier rows each row is compared: other side, same area, still in the window.

    Rows are in total order.

    >>> zeros = np.zeros(3, np.int64)
    >>> compared(np.array([1, 2, 7]), np.array([0, 1, 1]), zeros, within_us=5).tolist()
    [0, 1, 0]
    """
    place = np.arange(event_us.size)
    first = np.searchsorted(event_us, event_us - within_us)
    count = np.zeros(event_us.size, np.int64)
    for one in np.unique(area):
        for here in (0, 1):
            mine = np.flatnonzero((area == one) & (side == here))
            others = np.flatnonzero((area == one) & (side != here))
            until = np.searchsorted(others, place[mine])
            count[mine] = until - np.searchsorted(others, first[mine])
    return count


def _simulated(stream: Stream, nodes: int, setup: Setup) -> Row:
    """What all nodes together get done before the time is up."""
    end_us = stream.start_us + setup.seconds * SECOND_US
    work_us = setup.take_us + setup.compare_us * stream.comparisons
    processed = comparisons = reading_us = 0
    for node in range(nodes):
        own = stream.area % nodes == node
        cost_us = setup.read_us + np.where(own, work_us, 0)
        in_time = serial_us(stream.read_us, cost_us, stream.start_us) <= end_us
        processed += int((own & in_time).sum())
        comparisons += int(stream.comparisons[own & in_time].sum())
        reading_us += setup.read_us * int(in_time.sum())
    return {
        "engine": "sim",
        "nodes": nodes,
        "offered": int(stream.area.size),
        "processed": processed,
        "comparisons": comparisons,
        "reading_share": round(reading_us / (nodes * setup.seconds * SECOND_US), 5),
    }


def _with_speedups(rows: Sequence[Row]) -> list[Row]:
    """Each row with how many times more it did than the first of its engine."""
    done = []
    for row in rows:
        first = where(rows, engine=row["engine"])[:1]
        ratios: Row = {
            f"{name}_speedup": round(column([row], name)[0] / column(first, name)[0], 3)
            for name in ("processed", "comparisons")
        }
        done.append(row | ratios)
    return done


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says of Figs. 9 and 10."""
    return [
        _linear(rows, "processed", "the rows processed grow almost linearly with the nodes"),
        _linear(rows, "comparisons", "the comparisons made grow almost linearly with the nodes"),
        _cheap_order(rows),
        *_linear_on_spark(where(rows, engine="spark")),
    ]


def _linear_on_spark(rows: Sequence[Row]) -> list[Claim]:
    """The first figure's claim for the cores of one machine; nothing if Spark did not run."""
    if not rows:
        return []
    gain = column(rows[-1:], "processed_speedup")[0]
    cores = column(rows[-1:], "nodes")[0] / column(rows[:1], "nodes")[0]
    return [
        Claim(
            claim="on Spark, the rows processed grow almost linearly with the cores",
            paper="almost linear from 1 to 8 nodes",
            ours=f"{gain:.2f} times as many with {cores:g} times the cores",
            holds=gain / cores >= NEARLY_LINEAR,
        )
    ]


def _cheap_order(rows: Sequence[Row]) -> Claim:
    share = max(column(where(rows, engine="sim"), "reading_share"))
    return Claim(
        claim="what one order for all costs is negligible",
        paper="negligible",
        ours=f"reading every row on every node takes at most {share:.2%} of a node's time",
        holds=share < NEGLIGIBLE,
    )


def _linear(rows: Sequence[Row], name: str, claim: str) -> Claim:
    simulated = where(rows, engine="sim")
    nodes, speedups = column(simulated, "nodes"), column(simulated, f"{name}_speedup")
    gains = [speedup * nodes[0] / n for n, speedup in zip(nodes, speedups, strict=True)]
    first, last = simulated[0][name], simulated[-1][name]
    return Claim(
        claim=claim,
        paper="almost linear from 1 to 8 nodes",
        ours=f"{speedups[-1]:.2f} times as many with {nodes[-1] / nodes[0]:g} times the nodes "
        f"({first:,} → {last:,}); at least {min(gains):.0%} of linear",
        holds=min(gains) >= NEARLY_LINEAR,
    )


def plot(result: Result, canvas: "Figure") -> None:
    """Rows and comparisons over nodes, beside what linear would be."""
    canvas.set_size_inches(10, 4.5)
    rows = where(result.rows, engine="sim")
    nodes = column(rows, "nodes")
    panels = {
        "processed": ("Fig. 9: rows processed", "rows"),
        "comparisons": ("Fig. 10: join comparisons", "comparisons"),
    }
    for axes, (name, (title, label)) in zip(canvas.subplots(1, 2), panels.items(), strict=True):
        done = column(rows, name)
        axes.plot(nodes, done, marker="o", label="simulated")
        axes.axline((0, 0), (nodes[0], done[0]), color="grey", linestyle=":", label="linear")
        axes.set(title=title, xlabel="nodes", ylabel=f"{label} in {result.config['seconds']} s")
        axes.set_xlim(0, max(nodes) + 0.5)
        axes.set_ylim(0, max(done) * 1.1)
        axes.grid(alpha=0.3)
        axes.legend()
    canvas.suptitle(f"Slack-ScaleGate, Figs. 9–10 ({result.scale}, seed {result.seed})")
