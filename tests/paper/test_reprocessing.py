import numpy as np
import pytest

from laxity.core.triggers import eager, lazy
from laxity.paper.late_readings import Clock, clock, late_of, lazy_us, on_time
from laxity.paper.reprocessing import EAGER, LAZY, WAIT, reprocessed, rows_held
from laxity.sim.retained import Retained, Terms, rows_of
from laxity.sim.validation import meter_app
from laxity.sim.workload.columns import DAY_US, HOUR_US
from laxity.sim.workload.town import NEVER_US, Block, Town, town

SMALL = Town(days=12, max_late_days=6, late_share=0.05, lost_share=0.02, outage_days=1)


@pytest.fixture(scope="module")
def block() -> Block:
    (block,) = town(3, 12, SMALL)
    return block


def test_same_as_history_judges_and_triggers(block: Block) -> None:
    """Row by row: which readings are late, and when a lazy trigger takes them up."""
    at, columns = clock([block]), block.rows()
    terms = Terms(SMALL.max_late_days * DAY_US, period_us=HOUR_US)
    history = Retained(meter_app().shape, terms)
    taken_us: dict[tuple[int, int], int] = {}
    n_late = 0
    for meter, ts_us, n, us in zip(
        *(columns[name].tolist() for name in ("meter", "event_us", "n", "arrival_us")), strict=True
    ):
        mark = history.arrive(rows_of([meter], [ts_us], [0], [n]))[0]
        assert (mark == 0) == on_time(block, at)[meter, n]
        n_late += mark == 1
        if history.waiting.size:
            on_time_key = np.array([meter] if mark == 0 else [], np.int64)
            up = history.take_up(history.due(lazy, on_time_key))
            taken_us |= dict.fromkeys(zip(up.key.tolist(), up.number.tolist(), strict=True), us)
        history.forget()
    late = late_of(block, at)
    want = lazy_us(late, block, at, SMALL.max_late_days * 24)
    assert n_late == late.hour.size > 20
    places = zip(late.place.tolist(), late.hour.tolist(), strict=True)
    assert [taken_us.get(place, NEVER_US) for place in places] == want.tolist()


def test_same_as_history_holds(block: Block) -> None:
    """At the end of every day: what a reviser has that takes late readings up at once."""
    columns = block.rows()
    terms = Terms(SMALL.max_late_days * DAY_US, period_us=HOUR_US)
    history = Retained(meter_app().shape, terms)
    day_of = (columns["arrival_us"] - columns["event_us"].min()) // DAY_US
    for day in range(1, SMALL.days + 1):
        today = day_of == day - 1
        rows = [columns[name][today] for name in ("meter", "event_us", "kwh", "n")]
        history.arrive(rows_of(*rows))
        history.take_up(history.due(eager, rows[0]))
        history.forget()
        assert rows_held(block, day, SMALL)[LAZY] == history.n_held


def test_waiting_holds_readings_and_consumption() -> None:
    """The seed: 24 hours · 40 days · 2 for every meter; less what is missing."""
    whole = Town(late_share=0, lost_share=0)
    (block,) = town(1, 5, whole)
    held = rows_held(block, 55, whole)
    assert held == {LAZY: 5 * 26, WAIT: 5 * (960 + 959)}
    assert rows_held(block, 20, whole)[LAZY] == 5 * (26 + 26)  # and before the first may come more


def test_an_hour_is_reached_by_its_first_reading_or_a_later_one() -> None:
    at = Clock(np.array([5, 70, 70, 130]))
    assert at.hour(np.array([4, 5, 69, 70, 200])).tolist() == [-1, 0, 0, 2, 3]
    assert at.reach(np.array([1, 3, 4, 99])).tolist() == [70, 130, NEVER_US, NEVER_US]
    first, second = np.array([[5, 80, 70, 300]]), np.array([[9, 99, 99, 130]])
    blocks = [Block(0, np.zeros((1, 4)), first), Block(1, np.zeros((1, 4)), second)]
    assert clock(blocks).reached_us.tolist() == [5, 70, 70, 130]


def test_no_late_reading_counts_before_it_comes_or_after_its_time(block: Block) -> None:
    for way, hours in reprocessed(block, clock([block]), SMALL).responsiveness_h.items():
        assert hours.min() >= 0
        assert way != EAGER or hours.max() == 0
    latency = reprocessed(block, clock([block]), SMALL).logical_latency_h
    assert set(latency[WAIT].tolist()) == {SMALL.max_late_days * 24}
    assert (latency[EAGER] <= latency[LAZY]).all()
    assert (latency[LAZY] <= latency[WAIT]).all()
