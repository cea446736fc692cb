"""The running example of TinTiN: Figures 1, 2 and 4.

The figures are pictures; this is what the text says of them. Ten hourly readings of one meter; A1
of 2 by 1 hours gives differences, A2 of 4 by 1 hours alerts, whose value is the number of large
values in the match (§2.1). The pattern occurs twice. Without the readings of 04:00 and 05:00 the
alerts of the first occurrence are omitted, those at 04:00 and 05:00 are different, that at 06:00 is
exact (§4). In Fig. 4 one late reading comes; 00:00 is shifted to 14:00, and the alert at 14:00
could not have been produced without it.

It follows that the reading is that of 04:00 (an alert at 00:00 looks no further than the hour from
03:00), that the hour from 03:00 is negative, as is that from 07:00 (alerts up to 06:00, not 07:00),
and that those from 05:00 and 06:00 are large. Chosen are the numbers, that the hours from 01:00 and
02:00 are large, and that an earlier replay had ended at 07:00 (any context that ends then has
00:00 shifted to 14:00: more than 6 hours after it, the least of whole hours).
"""

from typing import Any

from laxity.core.triggers import eager, lazy
from laxity.sim.retained import Terms
from laxity.sim.revise import Replica, Reviser
from laxity.sim.validation import consumption, running_example
from laxity.sim.windows import Row, Running
from laxity.sim.workload.columns import DAY_US, HOUR_US

APP = running_example(large_kwh=100)
HOURLY = [2, 300, 400, -650, 3, 200, 250, -420, 1]
READINGS = [1_000 + sum(HOURLY[:hour]) for hour in range(10)]
MISSING = (4, 5)
FIGURE_1 = {0: 2, 1: 2, 2: 1, 4: 2, 5: 2, 6: 1}
FIGURE_2 = {4: 1, 5: 1, 6: 1}
FLUSH = [(hour * HOUR_US, kwh) for hour, kwh in enumerate([0, 500, 0, 1, 2, 3, 4, 5, 6])]


def reading(hour: int, meter: int = 1, kwh: float | None = None) -> Row:
    return Row(hour * HOUR_US, meter, READINGS[hour] if kwh is None else kwh)


def alerts(results: list[Row]) -> dict[int, Any]:
    """By hour."""
    return {result.ts_us // HOUR_US: result.value for result in results if result.key == 1}


def test_figure_1_the_pattern_occurs_twice() -> None:
    assert len(READINGS) == 10
    assert alerts(APP.on([reading(hour) for hour in range(10)])) == FIGURE_1


def test_figure_1_results_come_as_soon_as_a_row_is_past_their_window() -> None:
    running = Running(APP)
    came = {hour: list(alerts(running.take(reading(hour)))) for hour in range(10)}
    assert came[5] == [0]  # the hours up to 04:00 are known, and 04:00 to 05:00 may still grow
    assert [at for hours in came.values() for at in hours] == [0, 1, 2, 4]


def test_figure_2_two_readings_missing() -> None:
    rows = [reading(hour) for hour in range(10) if hour not in MISSING]
    got = alerts(APP.on(rows))
    assert got == FIGURE_2
    assert [hour for hour in FIGURE_1 if hour not in got] == [0, 1, 2]  # omitted
    assert [hour for hour in got if got[hour] != FIGURE_1[hour]] == [4, 5]  # different
    assert got[6] == FIGURE_1[6]  # exact


def test_figure_2_affected_windows_are_dashed() -> None:
    """Of A1 those at 03:00 to 05:00, of A2 and the whole app those of Lemma 2."""
    for hour, wanted in ((4, [-1, 0, 1, 2, 3, 4]), (5, [0, 1, 2, 3, 4, 5])):
        lo_us, hi_us = APP.shape.affected(hour * HOUR_US)
        assert [at for at in range(-9, 9) if lo_us < at * HOUR_US <= hi_us] == wanted
    assert consumption(3 * HOUR_US, [reading(3)]) is None


def test_figure_4_the_context_is_replayed_fourteen_hours_later() -> None:
    replica = Replica(APP, FLUSH)
    replica.replay([Row(hour * HOUR_US, 2, hour) for hour in range(8)], (-HOUR_US, 7 * HOUR_US))
    fed: list[Row] = []
    take = replica._running.take

    def noted(row: Row) -> list[Row]:
        fed.append(row)
        return take(row)

    replica._running.take = noted  # type: ignore[method-assign]
    context = [reading(hour) for hour in range(10) if hour != 5]  # 04:00 has come, 05:00 has not
    lo_us, hi_us = APP.shape.context(4 * HOUR_US)
    assert all(lo_us < row.ts_us < hi_us for row in context)
    results = replica.replay(context, APP.shape.affected(4 * HOUR_US))
    assert [row.ts_us // HOUR_US for row in fed] == [14, 15, 16, 17, 18, 20, 21, 22, 23]
    assert [row.value for row in fed] == [row.value for row in context]
    assert alerts(results + replica.flush()) == {0: 2, 1: 2, 2: 1, 4: 1}


def test_figures_in_one_run() -> None:
    """What comes late comes again as it should be, once with the lazy trigger."""
    on_time = [hour for hour in range(10) if hour not in MISSING]
    for trigger in (eager, lazy):
        reviser = Reviser(APP, Terms(DAY_US, period_us=HOUR_US), trigger, FLUSH)
        first = [result for hour in on_time for result in reviser.take(reading(hour))]
        first += [r for hour in range(10, 17) for r in reviser.take(reading(hour, kwh=READINGS[9]))]
        assert alerts(first) == FIGURE_2
        late = [result for hour in MISSING for result in reviser.take(reading(hour))]
        late += reviser.take(reading(17, kwh=READINGS[9]))
        assert alerts(first + late) == FIGURE_1
        repeated = len(late) - len(alerts(late))
        assert repeated == (4 if trigger is eager else 0)
        assert 6 not in alerts(late)  # it does not depend on what was missing
