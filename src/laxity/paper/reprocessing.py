"""How soon late readings count, and what is held for them: the part of `tintin_fig5` without Spark.

It follows from arrivals alone, for a reviser on slices of history: logical latency (how far the
newest event is past a late reading when that is reprocessed), responsiveness (how far it has moved
since the reading came) and the rows held. `UnsortedWait` reprocesses every reading when the bound
on lateness has passed, and holds, as the seed counts, what waits before each of the two aggregates:
readings, and hourly consumption (24 hours · 40 days · 2 for every meter).

Rows held are counted at the end of a day. In the first `max_late_days` readings before a meter's
first may still come, so its first span is held, too; the seed leaves that out.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from laxity.core.holes import by_time, no_holes, split
from laxity.core.revise import Ints
from laxity.paper.late_readings import Clock, late_of, lazy_us
from laxity.paper.result import Row
from laxity.sim.validation import meter_app
from laxity.sim.workload.columns import DAY_US, HOUR_US, START_US
from laxity.sim.workload.metering import HOURS_OF_DAY, PUNCTUAL_US
from laxity.sim.workload.town import NEVER_US, Block, Town

EAGER, LAZY = "eager", "lazy"
WAIT, DISCARD, SORTED = "UnsortedWait", "UnsortedDiscard", "SortedNoWait"
WATERMARK = "Watermark"  # Spark's own way to wait, for some apps
SPAN_US = meter_app().shape.span_us


@dataclass(frozen=True)
class Reprocessed:
    """Late readings by way: hours from their own, and from their arrival, until they count."""

    logical_latency_h: dict[str, Ints]
    responsiveness_h: dict[str, Ints]


def reprocessed(block: Block, at: Clock, of: Town) -> Reprocessed:
    """When the late readings of a block are reprocessed, by each way.

    Left out are those that come when the last hour is reached: what happens then is not seen.
    """
    late = late_of(block, at)
    late = late.take(at.hour(late.arrival_us) < at.reached_us.size - 1)
    come = at.hour(late.arrival_us)
    latest = late.hour + of.max_late_days * HOURS_OF_DAY
    lazy = lazy_us(late, block, at, of.max_late_days * HOURS_OF_DAY)
    hours = {
        EAGER: come,
        LAZY: np.where(lazy < NEVER_US, at.hour(lazy), latest),
        WAIT: latest,
    }
    return Reprocessed(
        {way: hour - late.hour for way, hour in hours.items()},
        {way: hour - come for way, hour in hours.items()},
    )


def late_rows(n_meters: int, blocks: Iterable[Block], at: Clock, of: Town) -> list[Row]:
    """A row per way: how soon the late readings of a town are reprocessed."""
    parts = [reprocessed(block, at, of) for block in blocks]
    rows: list[Row] = []
    for way in (EAGER, LAZY, WAIT):
        latency_h = np.concatenate([part.logical_latency_h[way] for part in parts])
        after_h = np.concatenate([part.responsiveness_h[way] for part in parts])
        rows.append(
            {
                "meters": n_meters,
                "how": way,
                "late": int(after_h.size),
                "logical_latency_h": round(float(latency_h.mean()), 2),
                "within_2h": round(float((after_h <= 2).mean()), 5),  # noqa: PLR2004
                "within_24h": round(float((after_h <= HOURS_OF_DAY).mean()), 5),
                "after_37d": round(float((after_h > 37 * HOURS_OF_DAY).mean()), 5),
            }
        )
    return rows


def rows_held(block: Block, day: int, of: Town) -> dict[str, int]:
    """Rows held for the meters of a block at the end of a day, by revising and by waiting."""
    newest_us = START_US + day * DAY_US - HOUR_US
    oldest_us = newest_us - of.max_late_days * DAY_US
    known = block.arrival_us <= newest_us + PUNCTUAL_US
    known[:, day * HOURS_OF_DAY :] = False
    known[:, : max(0, (oldest_us - 2 * SPAN_US - START_US) // HOUR_US)] = False  # long forgotten
    meter, hour = np.nonzero(known)
    ts_us = START_US + hour * HOUR_US
    holes = split(no_holes(), by_time(meter, ts_us), step=HOUR_US).open(SPAN_US, oldest_us)
    kept = holes.contexts(SPAN_US, oldest_us).hold(meter, ts_us) | (ts_us > newest_us - SPAN_US)
    waits = known[:, max(0, (oldest_us - START_US) // HOUR_US + 1) :]
    consumption = waits[:, 1:] & waits[:, :-1]
    return {LAZY: int(kept.sum()), WAIT: int(waits.sum() + consumption.sum())}
