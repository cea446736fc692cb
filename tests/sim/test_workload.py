"""Workloads: seeded, in order of arrival, and shaped like what they stand for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from laxity.errors import ConfigError
from laxity.sim.workload import bus, meters, scats, taxi, tweets
from laxity.sim.workload.traffic import congestion

Columns = dict[str, NDArray[Any]]
SMALL: dict[str, Callable[[int], Columns]] = {
    "bus": lambda seed: bus(seed, seconds=4),
    "scats": lambda seed: scats(seed, seconds=4),
    "meters": lambda seed: meters(seed, meters=20, days=20),
    "taxi": lambda seed: taxi(seed, trips=500),
    "tweets": lambda seed: tweets(seed, tweets=500),
}
everyone = pytest.mark.parametrize("name", SMALL)


def lateness_s(rows: Columns) -> NDArray[np.float64]:
    """How far each row is behind the newest event when it arrives."""
    behind = np.maximum.accumulate(rows["event_us"]) - rows["event_us"]
    return np.asarray(behind / 1e6)


@everyone
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_columns_are_equally_long_and_in_order_of_arrival(name: str, seed: int) -> None:
    rows = SMALL[name](seed)
    assert len({column.shape for column in rows.values()}) == 1
    assert all(column.dtype.kind in "ifU" for column in rows.values())
    assert {rows["event_us"].dtype, rows["arrival_us"].dtype} == {np.dtype(np.int64)}
    assert np.all(np.diff(rows["arrival_us"]) >= 0)
    assert np.all(rows["arrival_us"] >= rows["event_us"])


@everyone
def test_a_seed_stands_for_one_workload(name: str) -> None:
    first, again, other = SMALL[name](1), SMALL[name](1), SMALL[name](2)
    assert all(np.array_equal(first[column], again[column]) for column in first)
    assert any(not np.array_equal(first[column], other[column]) for column in first)


def congested_pairs(seed: int, seconds: int) -> list[tuple[float, int]]:
    """Second and area of each late bus that meets heavy flow in its area within 5 s."""
    buses, sensors = bus(seed, seconds=seconds), scats(seed, seconds=seconds)
    late, heavy = buses["delay_s"] > 120, sensors["flow"] > 40
    pairs = []
    for event, area in zip(buses["event_us"][late], buses["area"][late], strict=True):
        near = np.abs(sensors["event_us"][heavy] - event) <= 5_000_000
        if np.any(near & (sensors["area"][heavy] == area)):
            pairs.append(((event - buses["event_us"].min()) / 1e6, int(area)))
    return pairs


@pytest.mark.parametrize("seed", range(3))
def test_late_buses_and_heavy_flow_meet_rarely_and_in_jams(seed: int) -> None:
    pairs = congested_pairs(seed, seconds=60)
    assert 5 <= len(pairs) <= 0.01 * 30_000
    jam = congestion(
        seed,
        64,
        np.array([area for _, area in pairs]),
        np.array([second * 1e6 for second, _ in pairs]).astype(np.int64),
    )
    assert np.mean(jam > 0) > 0.9


def test_buses_report_in_turn_and_sensors_stay_where_they_are() -> None:
    buses, sensors = bus(0, seconds=10, delay="constant:0s"), scats(0, seconds=20)
    assert np.bincount(buses["bus_id"], minlength=911).tolist() == pytest.approx([5.5] * 911, abs=1)
    places = set(zip(sensors["sensor_id"].tolist(), sensors["area"].tolist(), strict=True))
    assert len(places) == 3504


def test_a_longer_run_has_the_same_jams_to_begin_with() -> None:
    area, second_us = np.arange(64).repeat(60), np.tile(np.arange(60), 64) * 1_000_000
    short = congestion(3, 64, area, second_us)
    longer = congestion(3, 64, np.append(area, 0), np.append(second_us, 600_000_000))
    assert short.max() > 0
    assert np.array_equal(short, longer[:-1])


def test_the_delay_option_reaches_the_arrivals() -> None:
    rows = bus(0, seconds=1, delay="constant:150ms")
    assert set((rows["arrival_us"] - rows["event_us"]).tolist()) == {150_000}


@pytest.mark.parametrize("seed", range(3))
def test_meters_are_late_as_rarely_and_as_much_as_in_the_paper(seed: int) -> None:
    rows = meters(seed, meters=100, days=60)
    late = lateness_s(rows) > 0
    assert 0.006 < late.mean() < 0.0085
    assert 86_400 < lateness_s(rows).max() <= 40 * 86_400
    assert np.max(rows["arrival_us"] - rows["event_us"]) <= 40 * 86_400_000_000


def test_late_readings_come_in_batches() -> None:
    rows = meters(0)
    late = lateness_s(rows) > 0
    batches = set(zip(rows["meter"][late], rows["arrival_us"][late], strict=True))
    assert late.sum() / len(batches) > 4


def test_counters_only_rise_except_where_broken() -> None:
    rows = meters(0, meters=50, days=30, broken=2, glitches=4)
    order = np.lexsort((rows["n"], rows["meter"]))
    meter, used_kwh = rows["meter"][order], np.diff(rows["kwh"][order])
    same = meter[1:] == meter[:-1]
    falls = np.unique(meter[1:][same & (used_kwh < 0)])
    assert len(falls) == 2
    wild = np.unique(meter[1:][same & (used_kwh > 100)])
    assert set(falls) == set(wild)


def test_each_meter_numbers_its_hours() -> None:
    rows = meters(0, meters=5, days=3)
    for meter in range(5):
        mine = rows["meter"] == meter
        assert sorted(rows["n"][mine]) == list(range(72))
    hours = (rows["event_us"] - rows["event_us"].min()) // 3_600_000_000
    assert np.array_equal(hours, rows["n"])


def test_evenings_use_more_than_nights() -> None:
    rows = meters(0, meters=20, days=30, broken=0, late_share=0)
    kwh = rows["kwh"][np.lexsort((rows["n"], rows["meter"]))].reshape(20, -1)
    by_hour = np.diff(kwh, axis=1)[:, : 29 * 24].reshape(20, 29, 24).mean(axis=(0, 1))
    assert by_hour[18] > 2 * by_hour[2]


def test_lost_readings_never_come() -> None:
    kept = meters(0, meters=50, days=30, lost_share=0.03)["n"].size
    assert 0.96 < kept / (50 * 30 * 24) < 0.98


def test_taxis_are_late_like_the_real_ones_and_crowd_in_one_zone() -> None:
    rows = taxi(0)
    late = lateness_s(rows)
    assert 0.7 < np.mean(late > 0) < 0.9
    assert 380 < np.median(late[late > 0]) < 550
    zones, counts = np.unique(rows["zone"], return_counts=True)
    assert zones[np.argmax(counts)] == 74
    assert 0.18 < counts.max() / counts.sum() < 0.22


def test_one_entity_is_in_a_fifteenth_of_the_tweets() -> None:
    rows = tweets(0)
    assert 0.055 < np.mean(rows["entity"] == 0) < 0.075
    kinds, counts = np.unique(rows["kind"], return_counts=True)
    assert kinds.tolist() == ["media", "other", "politician"]
    assert counts.min() / counts.sum() > 0.2
    assert rows["length"].max() <= 280


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bus(0, buses=0), "buses must be ≥ 1, got 0"),
        (lambda: scats(0, rate_per_s=0), "rate_per_s must be"),
        (lambda: meters(0, days=0), "days must be ≥ 1, got 0"),
        (lambda: taxi(0, trips=-1), "trips must be ≥ 0, got -1"),
        (lambda: tweets(0, entities=0), "entities must be ≥ 1, got 0"),
        (lambda: tweets(0, delay="soon"), "delay must be one of"),
    ],
)
def test_sizes_that_cannot_be_are_refused(make: Callable[[], Columns], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize("zones", [1, 2, 3])
def test_a_city_may_be_small(zones: int) -> None:
    assert set(taxi(0, trips=200, zones=zones)["zone"]) <= set(range(1, zones + 1))


@everyone
def test_nothing_is_a_workload_too(name: str) -> None:
    empty = {
        "bus": lambda: bus(0, seconds=0),
        "scats": lambda: scats(0, seconds=0),
        "meters": lambda: meters(0, lost_share=1),
        "taxi": lambda: taxi(0, trips=0),
        "tweets": lambda: tweets(0, tweets=0),
    }[name]()
    assert {column.size for column in empty.values()} == {0}
