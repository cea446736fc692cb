import numpy as np

from laxity.sim.validation import FUSE_KWH
from laxity.sim.workload.town import BLOCK, NEVER_US, Town, town


def test_readings_come_late_and_are_missing_as_in_table_2() -> None:
    """About 0.8 % late, by up to 40 days, and 3.6 % missing when they are due."""
    of = Town()
    (block,) = town(7, BLOCK, of)
    rows = block.rows()
    late_us = np.maximum.accumulate(rows["event_us"]) - rows["event_us"]
    late, lost = np.mean(late_us > 0), np.mean(block.arrival_us == NEVER_US)
    assert 0.006 < late < 0.010
    assert 0.030 < late + lost < 0.042
    assert 30 < late_us.max() / 86_400e6 <= 40
    assert np.all(rows["arrival_us"] >= rows["event_us"])
    assert np.all(np.diff(rows["arrival_us"]) >= 0)


def test_a_town_with_fewer_meters_is_part_of_one_with_more() -> None:
    of = Town(days=3, max_late_days=3)
    few, many = list(town(1, 10, of)), list(town(1, BLOCK + 20, of))
    assert [block.first for block in many] == [0, BLOCK]
    assert [block.kwh.shape for block in many] == [(BLOCK, 72), (20, 72)]
    assert np.array_equal(few[0].kwh, many[0].kwh[:10])
    assert np.array_equal(few[0].arrival_us, many[0].arrival_us[:10])
    assert not np.array_equal(many[0].kwh[:20], many[1].kwh)


def test_broken_meters_show_the_pattern_and_others_do_not() -> None:
    """Large consumption, then a negative one within a day."""
    for share in (0.0, 1.0):
        (block,) = town(2, 50, Town(days=20, broken_share=share, excess_share=0))
        hourly = np.diff(block.kwh, axis=1)
        negative = hourly.argmin(axis=1)
        for meter in range(50):
            before = hourly[meter, max(0, negative[meter] - 24) : negative[meter]]
            assert bool((before > FUSE_KWH).any()) == bool(share)
            assert (hourly[meter].min() < 0) == bool(share)
