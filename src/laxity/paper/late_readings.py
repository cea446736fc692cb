"""When the late readings of a town are reprocessed: what `tintin_table3` and `tintin_fig5` share.

Time is counted in hours since the first reading. The newest event of all meters reaches an hour
with its first reading; one that comes after the next hour is reached is late. On slices of history
it is reprocessed at once by an *eager* trigger, with its meter's next reading on time by a *lazy*
one. With the replica (Alg. 1) its context must be whole, too.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laxity.core.revise import Bools, Ints
from laxity.sim.workload.town import NEVER_US, Block


@dataclass(frozen=True)
class Clock:
    """When each hour was reached; those after the last one, when all is over."""

    reached_us: Ints

    def hour(self, at_us: Ints) -> Ints:
        """The newest hour at these times."""
        return np.searchsorted(self.reached_us, at_us, side="right") - 1

    def reach(self, hour: Ints) -> Ints:
        """When these hours were reached."""
        known = np.append(self.reached_us, NEVER_US)
        return known[np.minimum(hour, self.reached_us.size)]


def clock(blocks: Iterable[Block]) -> Clock:
    """The clock of all readings that come."""
    return clock_of(block.arrival_us.min(axis=0) for block in blocks)


def clock_of(first_us: Iterable[NDArray[np.int64]]) -> Clock:
    """The clock, from the first arrivals of every hour in each block."""
    first = np.minimum.reduce(list(first_us))
    return Clock(np.minimum.accumulate(first[::-1])[::-1])  # a later hour reaches earlier ones


@dataclass(frozen=True)
class Late:
    """Late readings of a block, with their meter's place in it."""

    place: Ints
    hour: Ints
    arrival_us: Ints

    def take(self, which: Bools) -> "Late":
        """Some of them."""
        return Late(self.place[which], self.hour[which], self.arrival_us[which])


def on_time(block: Block, at: Clock) -> Bools:
    """Which readings of a block come before the next hour is reached."""
    hours = np.arange(block.kwh.shape[1])
    punctual: Bools = block.arrival_us <= at.reach(hours + 1)
    return punctual & (block.arrival_us < NEVER_US)


def late_of(block: Block, at: Clock) -> Late:
    """The readings of a block that come late."""
    place, hour = np.nonzero((block.arrival_us < NEVER_US) & ~on_time(block, at))
    return Late(place, hour, block.arrival_us[place, hour])


def lazy_us(late: Late, block: Block, at: Clock, lateness: int) -> Ints:
    """When a lazy trigger takes each of them up, at the latest when time runs out.

    `NEVER_US` is when all is over.
    """
    n_hours = block.kwh.shape[1]
    hours = np.where(on_time(block, at), np.arange(n_hours), n_hours)
    then = np.minimum.accumulate(hours[:, ::-1], axis=1)[:, ::-1]  # the next hour read on time
    then = np.pad(then, ((0, 0), (0, 2)), constant_values=n_hours)
    arrival_us = np.pad(block.arrival_us, ((0, 0), (0, 1)), constant_values=NEVER_US)
    found = then[late.place, at.hour(late.arrival_us)]
    missed = arrival_us[late.place, found] < late.arrival_us  # came before, in the same hour
    found = np.where(missed, then[late.place, found + 1], found)
    return np.minimum(arrival_us[late.place, found], at.reach(late.hour + lateness))
