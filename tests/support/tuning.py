"""A tiny world for tuners: operators whose rows wait for slack or lag, then take a while."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from laxity.core.history import Point, Points
from laxity.core.slack import Memory, Seen
from laxity.core.tuner import Tuner

S = 1_000_000
ROWS = 500  # a batch

Lag = Callable[[int], int]  # of the slowest source, in microseconds, by number of the batch


def steady(lag_us: int) -> Lag:
    return lambda _: lag_us


def world(
    tuner: Tuner,
    lags: Mapping[str, Lag],
    n_batches: int,
    memory: Memory | None = None,
    *,
    floor_us: int = S // 2,
    begin: int = 0,
) -> tuple[list[dict[str, int]], Memory]:
    """The slacks a tuner sets batch by batch, two a second, and its memory at the end."""
    memory = memory or {}
    said: list[dict[str, int]] = []
    rng = np.random.default_rng(3)
    noise_us = rng.uniform(0, 0.2 * S, begin + n_batches)
    for n in range(begin, begin + n_batches):
        seen = {}
        for name, lag in lags.items():
            slack_us = said[-1].get(name, 0) if said else memory.get("slacks_us", {}).get(name, 0)
            lag_us = lag(n)
            seen[name] = Seen(
                n_rows=ROWS,
                latency_us=int(floor_us + min(slack_us, lag_us) + noise_us[n]),
                now_us=n * S // 2,
                newest_us=n * S // 2,
                lag_us=lag_us,
                n_read=ROWS,
                n_slack=ROWS // 2 if lag_us > slack_us else 0,
            )
        slacks_us, memory = tuner.next(memory, seen)
        said.append(slacks_us)
    return said, memory


def changes(said: list[dict[str, int]]) -> int:
    """How often the slacks changed."""
    return sum(a != b for a, b in pairwise(said))


def measure(n: int = 60, floor_s: float = 0.5, seed: int = 0) -> Points:
    """Points of a merge at many slacks and lags: results take the floor and the wait."""
    rng = np.random.default_rng(seed)
    points = []
    for k in range(n):
        slack_us, lag_us = rng.integers(0, 8 * S, 2).tolist()
        latency_us = int((floor_s + rng.uniform(0, 0.1)) * S) + min(slack_us, lag_us)
        early = 500 if lag_us > slack_us else 0
        points.append(Point(k * S, S, S, slack_us, lag_us, lag_us, 1_000, latency_us, early))
    return tuple(points)
