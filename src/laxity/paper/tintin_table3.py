"""TinTiN, Table 3: alerts of the meter application compared with those of sorted readings.

The application of §7 watches 10 to 50 thousand meters for 55 days; readings come up to 40 days
late. Strict determinism (all readings, sorted) says which alerts are right. TinTiN's two triggers
and discarding are judged by §4: an alert (meter, time, kind) is *exact* if it was told as strict
tells it, *omitted* if it was never told; every telling after the first exact one is a *duplicate*,
every other that does not agree with strict is *different*. The seed's readings are not public:
those of `laxity.sim.workload.town` are made to look like its Table 2.

There can be no alert about a meter whose readings give no invalid hour, whichever of them are
missing. So the whole town is generated and its clock kept, but the application runs only on meters
with an invalid hour: once on all readings, once on those on time, and once for every replay on the
context it needs, when Alg. 1 would replay it. Tests compare this with Alg. 1 itself.

A broken meter gives some 25 alerts, so a small town has few of them, and with as many alerts as the
seed's the counts of 10 k meters are mostly chance: of eight seeds discarding omitted nothing with
four, and lazy did not repeat ten times less than eager with two. The claims on both look at the
largest town, which holds the smaller ones.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from laxity.core.revise import Bools, Ints, merged
from laxity.paper.figure import Told, untold
from laxity.paper.late_readings import Clock, Late, clock_of, late_of, on_time
from laxity.paper.result import Claim, Result, Row, Scale, column, where
from laxity.sim import windows
from laxity.sim.validation import FUSE_KWH, meter_app
from laxity.sim.workload.columns import DAY_US, HOUR_US, START_US
from laxity.sim.workload.town import NEVER_US, Block, Town, town

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APP = meter_app()
SPAN = APP.shape.span_us // HOUR_US
HOURS_OF_DAY = DAY_US // HOUR_US

EAGER, LAZY, DISCARD = "TinTiN-TCE", "TinTiN-TCL", "UnsortedDiscard"
VERDICTS = ("exact", "omitted", "different", "duplicate")
Results = list[windows.Row]


@dataclass(frozen=True)
class Setup:
    """Towns of so many meters, and what happens in them."""

    meters: tuple[int, ...]
    town: Town = field(default_factory=Town)


SCALES: dict[Scale, Setup] = {
    "quick": Setup(meters=(1_000, 2_000), town=Town(broken_share=0.02)),
    "full": Setup(meters=(10_000, 20_000, 30_000, 40_000, 50_000)),
}


def run(scale: Scale, seed: int, told: Told = untold) -> list[Row]:
    """A row per number of meters and way of dealing with late readings."""
    return measure(SCALES[scale], seed, told)


def measure(setup: Setup, seed: int, told: Told = untold) -> list[Row]:
    """The rows under any setup."""
    rows: list[Row] = []
    done, all_meters = 0, sum(setup.meters)
    for n_meters in setup.meters:
        suspects, first_us, n_readings = [], [], 0
        for block in town(seed, n_meters, setup.town):
            told((done + block.first) / all_meters, f"{n_meters:,} meters")
            suspects.append(suspected(block))
            first_us.append(block.arrival_us.min(axis=0))
            n_readings += int((block.arrival_us < NEVER_US).sum())
        done += n_meters
        verdicts = judged(suspects, clock_of(first_us), setup.town)
        rows += [_row(n_meters, n_readings, how, verdicts[how]) for how in verdicts]
    return rows


def suspected(block: Block) -> Block:
    """The meters of a block with an invalid hour, were all readings there."""
    hourly = np.diff(block.kwh, axis=1)
    some = np.flatnonzero(((hourly < 0) | (hourly > FUSE_KWH)).any(axis=1))
    return Block(block.first, block.kwh[some], block.arrival_us[some])


def judged(blocks: Sequence[Block], at: Clock, of: Town) -> dict[str, Counter[str]]:
    """How many alerts of each way are right, wrong, missing or too many."""
    verdicts = {how: Counter[str]() for how in (EAGER, LAZY, DISCARD)}
    for block in blocks:
        for meter in range(block.kwh.shape[0]):
            one = Block(block.first, block.kwh[[meter]], block.arrival_us[[meter]])
            strict = alerts(one, one.arrival_us[0] < NEVER_US)
            for how, told in _told(one, at, of.max_late_days * HOURS_OF_DAY).items():
                verdicts[how] += verdict(strict, told)
    return verdicts


def _told(one: Block, at: Clock, lateness: int) -> dict[str, Results]:
    """The alerts about one meter by each way, in the order they are told."""
    late, punctual = late_of(one, at), on_time(one, at)[0]
    first = alerts(one, punctual)
    replays = {
        EAGER: eagerly(late, at),
        LAZY: lazily(late, at, one.arrival_us[0, punctual], lateness),
    }
    again = {how: [*first, *replayed(one, late, us)] for how, us in replays.items()}
    return again | {DISCARD: first}


def alerts(one: Block, known: Bools) -> Results:
    """The alerts about a meter, on some of its readings."""
    kwh = one.kwh[0].tolist()
    hours = np.flatnonzero(known).tolist()
    return APP.on(windows.Row(START_US + hour * HOUR_US, 0, kwh[hour]) for hour in hours)


def eagerly(late: Late, at: Clock) -> Ints:
    """When an eager trigger replays each reading: when it is there and its context is whole."""
    return np.maximum(late.arrival_us, at.reach(late.hour + SPAN))


def lazily(late: Late, at: Clock, on_time_us: Ints, lateness: int) -> Ints:
    """When a lazy one does: with a reading on time, once all that waits is whole.

    Or when its time has run out.
    """
    replay_us = at.reach(late.hour + lateness)
    for us in np.sort(on_time_us).tolist():
        waits = (late.arrival_us <= us) & (us < replay_us)
        if waits.any() and late.hour[waits].max() + SPAN <= at.hour(us):
            replay_us[waits] = us
    return replay_us


def replayed(one: Block, late: Late, replay_us: Ints) -> Iterator[windows.Row]:
    """The alerts told again: those that late readings affect, on what is known by then."""
    for hours, known in _replays(one.arrival_us[0], late, replay_us):
        for lo_us, hi_us in _joined(*APP.shape.affected(START_US + hours * HOUR_US)):
            needed = slice(max(_hour(lo_us) + 1, 0), _hour(hi_us) + SPAN)
            context = np.zeros_like(known)
            context[needed] = known[needed]
            yield from (r for r in alerts(one, context) if lo_us < r.ts_us <= hi_us)


def _replays(arrival_us: Ints, late: Late, replay_us: Ints) -> Iterator[tuple[Ints, Bools]]:
    """Readings replayed together, and what is known then.

    Readings that come together are taken in one by one: one that is replayed as it comes knows
    only those before it.
    """
    last = np.where(replay_us == late.arrival_us, late.hour, arrival_us.size)
    for us, hour in sorted(set(zip(replay_us.tolist(), last.tolist(), strict=True))):
        known = (arrival_us < us) | ((arrival_us == us) & (np.arange(arrival_us.size) <= hour))
        yield late.hour[(replay_us == us) & (last == hour)], known & (arrival_us < NEVER_US)


def verdict(strict: Results, told: Sequence[windows.Row]) -> Counter[str]:
    """What was told, in order, against what is right."""
    right = {_name(result): result.value for result in strict}
    counts: Counter[str] = Counter()
    exact: set[Any] = set()
    named = {_name(result) for result in told}
    for result in told:
        name = _name(result)
        if name not in right or right[name] != result.value:
            counts["different"] += 1
        else:
            counts["duplicate" if name in exact else "exact"] += 1
            exact.add(name)
    counts["omitted"] = len(right.keys() - named)
    return counts


def _name(result: windows.Row) -> tuple[Any, int, Any]:
    return result.key, result.ts_us, APP.kind(result.value)


def _joined(lo_us: Ints, hi_us: Ints) -> Iterator[tuple[int, int]]:
    whole = merged(np.zeros(lo_us.size, np.int64), lo_us, hi_us)
    return zip(whole.lo_us.tolist(), whole.hi_us.tolist(), strict=True)


def _hour(ts_us: int) -> int:
    return (ts_us - START_US) // HOUR_US


def _row(n_meters: int, n_readings: int, how: str, verdicts: Counter[str]) -> Row:
    counts: Row = {name: verdicts[name] for name in VERDICTS}
    head: Row = {"meters": n_meters, "readings": n_readings, "how": how}
    return head | counts


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says of Table 3; of repeating and discarding, in the largest town."""
    eager, lazy, discard = (where(rows, how=how)[-1] for how in (EAGER, LAZY, DISCARD))
    n_alerts, n_left_out = column([lazy], "exact")[0], column([discard], "omitted")[0]
    omitted = [sum(column(where(rows, how=how), "omitted")) for how in (EAGER, LAZY)]
    repeated = [column([row], "duplicate")[0] for row in (eager, lazy)]
    return [
        Claim(
            claim="neither trigger omits a result, in any town",
            paper="0 of 240 to 850",
            ours=f"eager {omitted[0]:.0f}, lazy {omitted[1]:.0f}; {n_alerts:.0f} alerts",
            holds=n_alerts > 0 and sum(omitted) == 0,
        ),
        Claim(
            claim="lazy repeats at least ten times less than eager",
            paper="39 against 2780 for 50 k meters",
            ours=f"{repeated[1]:.0f} against {repeated[0]:.0f}",
            holds=0 < repeated[0] >= 10 * repeated[1],
        ),
        Claim(
            claim="discarding omits results",
            paper="85 of 850 for 50 k meters",
            ours=f"{n_left_out:.0f} of {n_alerts:.0f}",
            holds=n_left_out > 0,
        ),
    ]


def plot(result: Result, canvas: "Figure") -> None:
    """The counts as bars, by meters and way."""
    canvas.set_size_inches(10, 4.5)
    for axes, how in zip(canvas.subplots(1, 3, sharey=True), (EAGER, LAZY, DISCARD), strict=True):
        rows = where(result.rows, how=how)
        names = [f"{row['meters']:,}" for row in rows]
        for nr, verdict in enumerate(VERDICTS):
            places = np.arange(len(names)) + 0.2 * (nr - 1.5)
            axes.bar(places, column(rows, verdict), width=0.2, label=verdict)
        axes.set_xticks(range(len(names)), names)
        axes.set_yscale("symlog")
        axes.set(title=how, xlabel="meters")
        axes.grid(alpha=0.3, axis="y")
    canvas.axes[0].set(ylabel="alerts")
    canvas.axes[-1].legend()
    canvas.suptitle(f"TinTiN, Table 3 ({result.scale}, seed {result.seed})")
