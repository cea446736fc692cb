"""A city's buses and traffic counters, both feeling the same jams.

Shaped like the Dublin data of Slack-ScaleGate's §6: 911 buses report how late they run, 3,504
SCATS sensors count vehicles, each stream sped up to 500 reports a second. A jam is a hidden bump
in one area; it depends on the seed, the area and the time since `start_us` alone, so `bus` and
`scats` with the same seed, areas and start see the same jams however long they are. Only inside
jams do late buses (`delay_s > 120`) and heavy flow (`flow > 40`) meet in one area.
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
    evenly_us,
)

BLOCK_S = 60  # jams are drawn minute by minute, so a longer run begins like a shorter one
JAMS_PER_AREA_AND_BLOCK = 0.08
JAM_S = (8, 30)
PERIODIC = "zipf:20s,1.0,10ms;50s,0.35,2ms"


def bus(
    seed: int,
    *,
    seconds: float = 60,
    rate_per_s: float = 500,
    buses: int = 911,
    areas: int = 64,
    delay: str = PERIODIC,
    start_us: int = START_US,
) -> Columns:
    """Reports of buses in turn: `bus_id`, the `area` it is in, `delay_s` behind its timetable."""
    at_least(1, buses=buses, areas=areas)
    event_us, rng = _reports_us(seed, 1, seconds, rate_per_s, start_us)
    bus_id = rng.permutation(buses)[np.arange(event_us.size) % buses]
    area = _tour(bus_id, (event_us - start_us) / SECOND_US, areas, seed)
    jam = congestion(seed, areas, area, event_us - start_us)
    usual_s = rng.normal(35, 20, buses)[bus_id] + rng.normal(0, 10, bus_id.size)
    delay_s = np.round(usual_s + jam * rng.exponential(40, bus_id.size), 1)
    arrival_us = delayed_us(event_us, delay, rng)
    return by_arrival(event_us, arrival_us, bus_id=bus_id, area=area, delay_s=delay_s)


def scats(
    seed: int,
    *,
    seconds: float = 60,
    rate_per_s: float = 500,
    sensors: int = 3504,
    areas: int = 64,
    delay: str = "constant:0s",
    start_us: int = START_US,
) -> Columns:
    """Reports of fixed sensors in turn: `sensor_id`, its `area`, `flow` in vehicles."""
    at_least(1, sensors=sensors, areas=areas)
    event_us, rng = _reports_us(seed, 2, seconds, rate_per_s, start_us)
    sensor_id = rng.permutation(sensors)[np.arange(event_us.size) % sensors]
    area = rng.integers(0, areas, sensors)[sensor_id]
    jam = congestion(seed, areas, area, event_us - start_us)
    usual = rng.gamma(9, 1.4, sensors)[sensor_id]
    flow = rng.poisson(usual + 20 * jam).astype(np.int64)
    arrival_us = delayed_us(event_us, delay, rng)
    return by_arrival(event_us, arrival_us, sensor_id=sensor_id, area=area, flow=flow)


def congestion(
    seed: int, areas: int, area: NDArray[np.int64], since_us: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How jammed an area is (0…1) so long after the start, for each pair.

    >>> congestion(0, 4, np.array([2, 2]), np.array([9, 20]) * SECOND_US).round(1).tolist()
    [0.0, 1.0]
    """
    second = since_us // SECOND_US
    levels = _levels(seed, areas, int(second.max(initial=0)) + 1)
    return levels[second, area]


def _levels(seed: int, areas: int, seconds: int) -> NDArray[np.float64]:
    """The jam in each second and area: a bump per jam, the higher where two overlap."""
    n_blocks = -(-seconds // BLOCK_S)
    levels = np.zeros((n_blocks * BLOCK_S + JAM_S[1], areas))
    for block in range(n_blocks):
        rng = np.random.default_rng([seed, 0, block])
        jammed = np.flatnonzero(rng.random(areas) < JAMS_PER_AREA_AND_BLOCK)
        begins = block * BLOCK_S + rng.integers(0, BLOCK_S, jammed.size)
        lasts = rng.integers(*JAM_S, jammed.size, endpoint=True)
        for area, begin, last in zip(jammed, begins, lasts, strict=True):
            bump = np.sin(np.pi * (np.arange(last) + 0.5) / last)
            span = levels[begin : begin + last, area]
            np.maximum(span, bump[: span.size], out=span)
    return levels[:seconds]


def _reports_us(
    seed: int, stream: int, seconds: float, rate_per_s: float, start_us: int
) -> tuple[NDArray[np.int64], np.random.Generator]:
    at_least(0, seconds=seconds)
    at_least(1e-6, rate_per_s=rate_per_s)
    rng = np.random.default_rng([seed, stream])
    return evenly_us(round(seconds * rate_per_s), rate_per_s, start_us, rng), rng


def _tour(
    bus_id: NDArray[np.int64], since_s: NDArray[np.float64], areas: int, seed: int
) -> NDArray[np.int64]:
    """The area of a bus on its round through neighbouring areas, half a minute or more in each."""
    rng = np.random.default_rng([seed, 3])
    n_buses = int(bus_id.max(initial=0)) + 1
    first, stay_s = rng.integers(0, areas, n_buses), rng.uniform(30, 120, n_buses)
    return (first[bus_id] + (since_s / stay_s[bus_id]).astype(np.int64)) % areas
