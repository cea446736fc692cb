"""Taxi trips, known only once they end.

The event is the pick-up, the arrival the drop-off, as in New York's green-cab records: replayed in
the order of drop-offs about four fifths of the trips are late, half of these by some eight minutes
(in the records 464 s), a few by many hours. One zone has a fifth of all pick-ups.
"""

import numpy as np
from numpy.typing import NDArray

from laxity.sim.workload.columns import (
    DAY_US,
    HOUR_US,
    SECOND_US,
    START_US,
    Columns,
    at_least,
    by_arrival,
    ranks,
)

# Pick-ups per hour of the day, relative.
HOURLY = np.array(
    [17, 13, 10, 9, 7, 6, 15, 39, 47, 52, 53, 55, 56, 59, 65, 75, 76, 77, 77, 62, 47, 35, 28, 22],
    dtype=np.float64,
)
BUSIEST_ZONE = 74
TYPICAL_S = 690.0
FORGOTTEN_S = 86_000.0  # a meter nobody switched off


def taxi(
    seed: int,
    *,
    trips: int = 20_000,
    trips_per_day: float = 2_200,
    zones: int = 226,
    start_us: int = START_US,
) -> Columns:
    """Trips: pick-up `zone`, `distance_mi`, `fare_usd`; event = pick-up, arrival = drop-off."""
    at_least(1, zones=zones)
    at_least(0, trips=trips)
    at_least(1e-6, trips_per_day=trips_per_day)
    rng = np.random.default_rng([seed, 5])
    pickup_us = _pickups_us(rng, trips, trips_per_day, start_us)
    duration_s = _durations_s(rng, trips)
    hours = np.minimum(duration_s, 3 * 3600) / 3600
    distance_mi = np.round(hours * rng.lognormal(np.log(9.7), 0.4, trips), 2)
    fare_usd = np.round(3 + 2.2 * distance_mi + 33 * hours + rng.exponential(1, trips), 2)
    return by_arrival(
        pickup_us,
        pickup_us + (duration_s * SECOND_US).astype(np.int64),
        zone=(ranks(_zone_weights(zones), trips, rng) + BUSIEST_ZONE - 1) % zones + 1,
        distance_mi=distance_mi,
        fare_usd=fare_usd,
    )


def _pickups_us(
    rng: np.random.Generator, trips: int, trips_per_day: float, start_us: int
) -> NDArray[np.int64]:
    """Sorted pick-ups that follow the hours of the day."""
    day = (np.arange(trips) / trips_per_day).astype(np.int64)
    hour = ranks(HOURLY, trips, rng)
    since_us = day * DAY_US + hour * HOUR_US + rng.integers(0, HOUR_US, trips)
    return start_us + np.sort(since_us)


def _durations_s(rng: np.random.Generator, trips: int) -> NDArray[np.float64]:
    """Lognormal, plus the trips that ended at once and those that were never ended."""
    duration_s = rng.lognormal(np.log(TYPICAL_S), 0.62, trips)
    kind = rng.random(trips)
    at_once, forgotten = kind < 0.02, kind > 0.998  # noqa: PLR2004
    duration_s[at_once] = rng.uniform(1, 30, at_once.sum())
    duration_s[forgotten] = rng.uniform(FORGOTTEN_S / 10, FORGOTTEN_S, forgotten.sum())
    return duration_s


def _zone_weights(zones: int) -> NDArray[np.float64]:
    """A fifth for the first zone, an eighth for the second, the rest falling as 1/rank."""
    rest = 1 / np.arange(2.0, max(2, zones))
    return np.concatenate([[0.2, 0.13], 0.67 * rest / rest.sum()])[:zones]
