"""TinTiN, Fig. 5: what revising the alerts of a town costs, and how soon late readings count.

Throughput and processing latency (a, b) are measured on Spark, a day of readings a batch. Logical
latency, responsiveness and memory (c, d, e) follow from arrivals alone (`reprocessing.py`); rows
held are those after the last day. Claims on speed are made of towns large enough.

Revising is compared with waiting as the seed describes it: every row is held, then evaluated. With
10 k meters it was 5.9 times as fast in a full run (runs by hand just before gave 4.9 and 5.1), with
20 k meters 8.6 times. Beside it stands Spark's own watermark, where the windows of an app wait with
a few numbers each: what that costs is memory, and time.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from laxity.paper.figure import Told, untold
from laxity.paper.late_readings import clock
from laxity.paper.reprocessing import (
    DISCARD,
    EAGER,
    LAZY,
    SORTED,
    WAIT,
    WATERMARK,
    late_rows,
    rows_held,
)
from laxity.paper.result import Claim, Result, Row, Scale, column, where
from laxity.sim.workload.town import Block, Town, town

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = (DISCARD, SORTED, EAGER, LAZY, WATERMARK, WAIT)  # the first ones warm Java up
COMPARABLE = 10_000  # meters; with fewer, a batch costs what any batch costs


@dataclass(frozen=True)
class Setup:
    """Towns of so many meters, by which ways, and what happens in them; on Spark maybe fewer days.

    As in the seed nobody waits in towns of more than 20 k meters.
    """

    ways: Mapping[int, Sequence[str]]
    town: Town = field(default_factory=Town)
    on_spark: Town = field(default_factory=Town)


SCALES: dict[Scale, Setup] = {
    "quick": Setup({300: WAYS, 500: [LAZY]}, on_spark=Town(days=7, max_late_days=4)),
    "full": Setup({COMPARABLE: WAYS, 20_000: [LAZY, WAIT], 50_000: [LAZY]}),
}


def run(scale: Scale, seed: int, told: Told = untold) -> list[Row]:
    """A row per number of meters and way."""
    return measure(SCALES[scale], seed, told)


def measure(setup: Setup, seed: int, told: Told = untold) -> list[Row]:
    """The rows under any setup."""
    rows: list[Row] = []
    for nr, (n_meters, ways) in enumerate(setup.ways.items()):
        share = nr / len(setup.ways)
        told(share, f"{n_meters:,} meters: when late readings count")
        late = arrivals(setup.town, seed, n_meters)
        told(share, f"{n_meters:,} meters on Spark")
        blocks = town(seed, n_meters, setup.on_spark)
        for how, fast in _on_spark(blocks, setup.on_spark, ways).items():
            none: Row = dict.fromkeys(late[LAZY])
            rows.append(none | late.get(how, {}) | {"meters": n_meters, "how": how} | fast)
    return rows


def arrivals(of: Town, seed: int, n_meters: int) -> dict[str, Row]:
    """By way what follows from arrivals."""
    at = clock(town(seed, n_meters, of))
    rows = late_rows(n_meters, town(seed, n_meters, of), at, of)
    held = [rows_held(block, of.days, of) for block in town(seed, n_meters, of)]
    n_held = {way: sum(one[way] for one in held) for way in (LAZY, WAIT)}
    return {str(row["how"]): row | {"held": n_held.get(str(row["how"]))} for row in rows}


def _on_spark(blocks: Iterable[Block], of: Town, ways: Sequence[str]) -> dict[str, Row]:
    """By way how fast a town's readings are worked through."""
    import laxity as lx
    from laxity.paper.town_on_spark import CONF, speed, write_days

    with tempfile.TemporaryDirectory(prefix="laxity-fig5-") as name:
        write_days(Path(name), blocks, of)
        spark = lx.session("laxity paper", conf=CONF)
        return {how: asdict(speed(spark, how, Path(name), of)) for how in ways}


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says of Fig. 5."""
    lazy = where(rows, how=LAZY)
    lazily_h, waited_h = (column(where(rows, how=way), "logical_latency_h") for way in (LAZY, WAIT))
    fewer = [_held(row, where(rows, how=WAIT)[0]) for row in lazy]
    return [
        *_faster_than_waiting(rows),
        *_slower_than_unusable(where(rows, meters=COMPARABLE)),
        Claim(
            claim="90 % of late readings are reprocessed within 2 hours (lazy)",
            paper="90 % within 2 hours, 99.8 % within 24",
            ours=", ".join(f"{row['within_2h']:.1%}, {row['within_24h']:.1%}" for row in lazy),
            holds=min(column(lazy, "within_2h")) >= 0.9,  # noqa: PLR2004
        ),
        Claim(
            claim="lazy has a smaller logical latency than waiting",
            paper="hours more than eager; 40 days for waiting",
            ours=f"at most {max(lazily_h):.0f} h against {min(waited_h):.0f} h",
            holds=max(lazily_h) < min(waited_h),
        ),
        Claim(
            claim="at least 50 times fewer rows are held than by waiting",
            paper="two orders of magnitude; 26 rows for every meter and contexts against 1920",
            ours=", ".join(f"{times:.0f} times" for times in fewer),
            holds=min(fewer) >= 50,  # noqa: PLR2004
        ),
    ]


def _faster_than_waiting(rows: Sequence[Row]) -> list[Claim]:
    told = []
    for row in where(rows, how=WAIT):
        n_meters = int(column([row], "meters")[0])
        if n_meters < COMPARABLE:
            continue
        fast = _speeds(where(rows, meters=n_meters))
        times_faster = fast[LAZY] / fast[WAIT]
        ours = f"{times_faster:.1f} times: {fast[LAZY]:,.0f} and {fast[WAIT]:,.0f} rows/s"
        if WATERMARK in fast:
            than_windows = fast[LAZY] / fast[WATERMARK]
            ours += f"; {than_windows:.1f} times where Spark's watermark keeps numbers, not rows"
        told.append(
            Claim(
                claim=f"at least 5 times the throughput of waiting with {n_meters:,} meters",
                paper="an order of magnitude; waiting runs out of memory beyond 20 k meters",
                ours=ours,
                holds=times_faster >= 5,  # noqa: PLR2004
            )
        )
    return told


def _slower_than_unusable(rows: Sequence[Row]) -> list[Claim]:
    fast = _speeds(rows)
    if not fast:
        return []
    return [
        Claim(
            claim="slower than sorted input or discarding, which cannot be used",
            paper="TinTiN below SNW and UD",
            ours=f"{fast[SORTED]:,.0f} sorted, {fast[DISCARD]:,.0f} discarding",
            holds=fast[LAZY] < min(fast[SORTED], fast[DISCARD]),
        ),
    ]


def _speeds(rows: Sequence[Row]) -> dict[str, float]:
    return {str(row["how"]): column([row], "rows_per_s")[0] for row in rows}


def _held(row: Row, waiting: Row) -> float:
    """How many times fewer rows a meter needs than by waiting."""
    ours, theirs = (column([r], "held")[0] / column([r], "meters")[0] for r in (row, waiting))
    return theirs / ours


def plot(result: Result, canvas: "Figure") -> None:
    """Throughput, processing latency, logical latency, responsiveness and memory, by way."""
    canvas.set_size_inches(12, 7)
    rows = result.rows
    names = [f"{row['how']}\n{row['meters']:,}" for row in rows]
    for axes, (what, title) in zip(canvas.subplots(2, 3).flat, PANELS.items(), strict=False):
        axes.bar(range(len(rows)), column(rows, what))
        axes.set_xticks(range(len(rows)), names, rotation=90, fontsize=7)
        axes.set(title=title)
        axes.grid(alpha=0.3, axis="y")
    canvas.axes[-1].axis("off")
    canvas.suptitle(f"TinTiN, Fig. 5 ({result.scale}, seed {result.seed})")


PANELS = {
    "rows_per_s": "a  rows a second",
    "batch_s": "b  seconds a batch",
    "logical_latency_h": "c  logical latency, hours",
    "within_2h": "d  late readings within 2 hours",
    "held": "e  rows held after the last day",
}
