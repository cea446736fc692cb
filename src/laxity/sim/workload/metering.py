"""Electricity meters whose readings sometimes come weeks late, in batches.

Each meter sends its counter (cumulative kWh) every hour, numbered by `n`. Now and then a meter
falls silent for hours or days; the readings it owes are collected in one batch, up to 40 days
late (TinTiN, §7 and Table 2: about 0.8 % of rows). A few meters are broken: the counter jumps by
a large amount and falls back within four hours, so its hourly difference turns negative (§2).
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
)

HOURS_OF_DAY = 24
PUNCTUAL_US = 300 * SECOND_US  # a reading that is not late comes within five minutes
LARGE_KWH = 200.0  # more than the fuses of a house let through in an hour


def meters(
    seed: int,
    *,
    meters: int = 100,
    days: int = 60,
    late_share: float = 0.008,
    max_late_days: int = 40,
    lost_share: float = 0.0,
    broken: int = 3,
    glitches: int = 4,
    start_us: int = START_US,
) -> Columns:
    """Hourly readings: `meter`, its sequence number `n`, the counter `kwh`.

    `lost_share` of the readings never come (the paper's holes, late or never, are 3.6 %).
    """
    at_least(1, meters=meters, days=days, max_late_days=max_late_days)
    at_least(0, late_share=late_share, lost_share=lost_share, broken=broken, glitches=glitches)
    rng = np.random.default_rng([seed, 4])
    hours = days * HOURS_OF_DAY
    kwh = np.cumsum(hourly_kwh(rng, meters, hours), axis=1) + rng.uniform(0, 9e4, (meters, 1))
    _break_down(rng, kwh, min(broken, meters), glitches)
    event_us = start_us + np.tile(np.arange(hours, dtype=np.int64) * HOUR_US, (meters, 1))
    arrival_us = event_us + rng.integers(0, PUNCTUAL_US, event_us.shape)
    fall_silent(rng, arrival_us, late_share, max_late_days * DAY_US, start_us)
    kept = np.flatnonzero(rng.random(kwh.size) >= lost_share)
    return by_arrival(
        event_us.ravel()[kept],
        arrival_us.ravel()[kept],
        meter=kept // hours,
        n=kept % hours,
        kwh=np.round(kwh, 3).ravel()[kept],
    )


def hourly_kwh(rng: np.random.Generator, meters: int, hours: int) -> NDArray[np.float64]:
    """Consumption per meter and hour: low at night, a morning bump, an evening peak."""
    hour = np.arange(hours) % HOURS_OF_DAY
    daily = 0.5 + 0.6 * np.exp(-(((hour - 7.5) / 1.5) ** 2)) + np.exp(-(((hour - 19) / 2.5) ** 2))
    weekend = np.where(np.arange(hours) // HOURS_OF_DAY % 7 >= 5, 1.15, 1.0)  # noqa: PLR2004
    household = rng.lognormal(np.log(0.9), 0.5, (meters, 1))
    kwh: NDArray[np.float64] = household * daily * weekend * rng.gamma(8, 1 / 8, (meters, hours))
    return kwh


def _break_down(
    rng: np.random.Generator, kwh: NDArray[np.float64], broken: int, glitches: int
) -> None:
    """Let some counters run wild for one to three hours, several times, and fall back."""
    for meter in rng.choice(kwh.shape[0], broken, replace=False):
        for begin in rng.integers(1, max(2, kwh.shape[1] - 4), glitches):
            wild = kwh[meter, begin : begin + rng.integers(1, 4)]
            wild += np.cumsum(rng.uniform(LARGE_KWH, 5 * LARGE_KWH, wild.size))


def fall_silent(
    rng: np.random.Generator,
    arrival_us: NDArray[np.int64],
    late_share: float,
    max_late_us: int,
    start_us: int,
) -> None:
    """Hold back runs of readings and deliver each run at one moment after its end."""
    lengths = _silences(rng, late_share * arrival_us.size, arrival_us.shape[1], max_late_us)
    meter = rng.integers(0, arrival_us.shape[0], lengths.size)
    first = (rng.random(lengths.size) * (arrival_us.shape[1] - lengths + 1)).astype(np.int64)
    # From at once to the bound, evenly on a log scale: most batches come within a day.
    room_us = max_late_us - lengths * HOUR_US
    held_us = (room_us ** rng.uniform(0.5, 1, lengths.size)).astype(np.int64)
    batch_us = start_us + (first + lengths) * HOUR_US + held_us
    column = np.repeat(first - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    late = np.repeat(meter, lengths), column
    # Where silences overlap the earlier batch brings the row: none is later than the bound.
    arrival_us[late] = np.iinfo(np.int64).max
    np.minimum.at(arrival_us, late, np.repeat(batch_us, lengths))


def _silences(
    rng: np.random.Generator, n_late: float, hours: int, max_late_us: int
) -> NDArray[np.int64]:
    """Lengths of silences in hours (median six, up to three days) that add up to `n_late` rows."""
    most = max(1, min(72, hours, max_late_us // HOUR_US - 1))
    lengths = np.clip(rng.lognormal(np.log(6), 0.9, int(n_late) + 1).astype(np.int64), 1, most)
    return lengths[np.cumsum(lengths) <= n_late]
