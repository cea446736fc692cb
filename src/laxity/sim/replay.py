"""Drive a decider through a workload on the virtual clock.

Every `every_us` the rows that have arrived since the last tick are reduced to the numbers a
micro-batch would give, and shown to the decider: Spark and the wall clock left out, the rest alike.
"""

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from laxity.core.progress import Heard
from laxity.errors import ConfigError
from laxity.sim.clock import Clock

Columns = Mapping[str, NDArray[np.generic]]
D_co = TypeVar("D_co", covariant=True)


class Decider(Protocol[D_co]):
    """Anything that decides from what each source brought."""

    def advance(self, heard: Mapping[str, Heard], now_us: int) -> D_co:
        """Take in one micro-batch."""


def replay(sources: Mapping[str, Columns], decider: Decider[D_co], every_us: int) -> list[D_co]:
    """What the decider decided at every tick, until all rows have arrived.

    Each source has `event_us` and `arrival_us`, sorted by arrival.
    """
    if every_us <= 0:
        raise ConfigError(f"every_us must be > 0, got {every_us}")
    arrivals = {name: columns["arrival_us"] for name, columns in sources.items()}
    spans = [(int(us[0]), int(us[-1])) for us in arrivals.values() if us.size]
    first_us, last_us = min(low for low, _ in spans), max(high for _, high in spans)
    clock = Clock(first_us)
    taken = dict.fromkeys(sources, 0)
    decisions: list[D_co] = []

    def tick() -> None:
        heard = {}
        for name, columns in sources.items():
            end = int(np.searchsorted(arrivals[name], clock.now_us, side="right"))
            heard[name] = _heard(columns["event_us"][taken[name] : end])
            taken[name] = end
        decisions.append(decider.advance(heard, clock.now_us))

    clock.every(every_us, tick, until_us=last_us + every_us)
    clock.run()
    return decisions


def _heard(event_us: NDArray[np.generic]) -> Heard:
    newest_us = int(event_us.max()) if event_us.size else None
    return Heard(n_rows=int(event_us.size), newest_us=newest_us)
