"""The meters of a whole town, a block at a time: more readings than fit in memory as rows.

Readings are a grid, meters by hours. About 0.8 % come late, in batches up to 40 days late, and
about 2.8 % never come (TinTiN, Table 2: 3.6 % are missing when they are due). The seed says that
two orders of magnitude fewer rows are held than there are: so readings that never come are missed
in outages of a week or more, not one by one. Few meters break down: the counter runs wild for one
to three hours and falls back. A share of these falls into a silence of its own, such that leaving
out late readings misses about as many alerts as in the seed's Table 3 (10 %). Some hours exceed the
fuses with no harm done.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laxity.sim.workload.columns import DAY_US, HOUR_US, START_US, Columns, by_arrival
from laxity.sim.workload.metering import (
    HOURS_OF_DAY,
    LARGE_KWH,
    PUNCTUAL_US,
    fall_silent,
    hourly_kwh,
)

BLOCK = 1_000  # meters; each block has its own random numbers
NEVER_US = 2**62


@dataclass(frozen=True)
class Town:
    """How often what happens; shares are of readings, or of meters that break down once."""

    days: int = 55
    late_share: float = 0.008
    max_late_days: int = 40
    lost_share: float = 0.028
    outage_days: float = 14.0
    broken_share: float = 0.001
    silent_share: float = 0.1
    excess_share: float = 3e-7

    @property
    def hours(self) -> int:
        """Readings of each meter, had they all come."""
        return self.days * HOURS_OF_DAY


@dataclass(frozen=True)
class Block:
    """Meters from `first` on: their counters, and when each reading comes or that it never does."""

    first: int
    kwh: NDArray[np.float64]
    arrival_us: NDArray[np.int64]

    def rows(self) -> Columns:
        """The readings that come, in order of arrival: `meter`, its sequence number `n`, `kwh`."""
        meter, hour = np.nonzero(self.arrival_us < NEVER_US)
        return by_arrival(
            START_US + hour * HOUR_US,
            self.arrival_us[meter, hour],
            meter=self.first + meter,
            n=hour,
            kwh=self.kwh[meter, hour],
        )


def town(seed: int, meters: int, of: Town) -> Iterator[Block]:
    """The town's meters; a town with fewer meters is a part of one with more."""
    for first in range(0, meters, BLOCK):
        block = _block(np.random.default_rng([seed, 5, first]), first, of)
        last = meters - first
        yield Block(first, block.kwh[:last], block.arrival_us[:last])


def _block(rng: np.random.Generator, first: int, of: Town) -> Block:
    used = hourly_kwh(rng, BLOCK, of.hours)
    used[rng.random(used.shape) < of.excess_share] += 2 * LARGE_KWH
    kwh = np.cumsum(used, axis=1) + rng.uniform(0, 9e4, (BLOCK, 1))
    event_us = START_US + np.arange(of.hours, dtype=np.int64) * HOUR_US
    arrival_us = event_us + rng.integers(0, PUNCTUAL_US, kwh.shape)
    fall_silent(rng, arrival_us, of.late_share, of.max_late_days * DAY_US, START_US)
    for meter in np.flatnonzero(rng.random(BLOCK) < of.broken_share):
        begin = int(rng.integers(1, of.hours - 4))
        wild = kwh[meter, begin : begin + rng.integers(1, 4)]
        wild += np.cumsum(rng.uniform(LARGE_KWH, 5 * LARGE_KWH, wild.size))
        if rng.random() < of.silent_share:
            last = begin + int(rng.integers(1, HOURS_OF_DAY))
            held_us = int(rng.integers(2 * HOUR_US, (of.max_late_days - 2) * DAY_US))
            arrival_us[meter, begin : last + 1] = START_US + last * HOUR_US + held_us
    _cut_off(rng, arrival_us, of)
    return Block(first, np.round(kwh, 3), arrival_us)


def _cut_off(rng: np.random.Generator, arrival_us: NDArray[np.int64], of: Town) -> None:
    """Let some meters' readings of some weeks never come."""
    mean_hours = of.outage_days * HOURS_OF_DAY
    n_outages = rng.poisson(of.lost_share * arrival_us.size / mean_hours)
    hours = np.clip(rng.gamma(4, mean_hours / 4, n_outages), 1, of.hours // 2).astype(np.int64)
    for meter, length in zip(rng.integers(0, BLOCK, n_outages), hours, strict=True):
        begin = int(rng.integers(0, of.hours - length))
        arrival_us[meter, begin : begin + length] = NEVER_US
