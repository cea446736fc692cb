"""Tweets that mention a few entities very often and many hardly ever.

Shaped like the election tweets of load-aware shedding (LAS, §5.1): 35,000 entities, the most
frequent in about 6.5 % of the tweets, each a politician, a medium or something else. What a tweet
costs depends on the kind (in the paper 5, 25 and 1 ms).
"""

import numpy as np
from numpy.typing import NDArray

from laxity.sim.workload.columns import (
    SECOND_US,
    START_US,
    Columns,
    at_least,
    by_arrival,
    delayed_us,
    ranks,
)

KINDS = np.array(["politician", "media", "other"])
KIND_SHARES = (0.34, 0.30)  # of the entities, the rest being "other"
LONGEST = 280


def tweets(
    seed: int,
    *,
    tweets: int = 50_000,
    rate_per_s: float = 100,
    entities: int = 35_000,
    exponent: float = 0.94,
    delay: str = "exponential:240ms",
    start_us: int = START_US,
) -> Columns:
    """Tweets: the `entity` mentioned (0 is the most frequent), its `kind`, `length` in letters."""
    at_least(1, entities=entities)
    at_least(0, tweets=tweets, exponent=exponent)
    at_least(1e-6, rate_per_s=rate_per_s)
    rng = np.random.default_rng([seed, 6])
    gaps_us = rng.exponential(SECOND_US / rate_per_s, tweets)
    event_us = start_us + np.cumsum(gaps_us).astype(np.int64)
    entity = ranks(np.arange(1.0, entities + 1) ** -exponent, tweets, rng)
    length = np.clip(rng.lognormal(np.log(95), 0.55, tweets), 5, LONGEST).astype(np.int64)
    arrival_us = delayed_us(event_us, delay, rng)
    return by_arrival(event_us, arrival_us, entity=entity, kind=kind_of(entity), length=length)


def kind_of(entity: NDArray[np.int64]) -> NDArray[np.str_]:
    """The kind of each entity: fixed for ever, and spread evenly over frequent and rare ones.

    >>> kind_of(np.arange(4)).tolist()
    ['politician', 'media', 'politician', 'other']
    """
    golden = (np.sqrt(5) - 1) / 2
    place = np.searchsorted(np.cumsum(KIND_SHARES), entity * golden % 1, side="right")
    kinds: NDArray[np.str_] = KINDS[place]
    return kinds
