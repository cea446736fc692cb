from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laxity.core.triggers import Trigger, eager, lazy
from laxity.paper.figure import draw
from laxity.paper.late_readings import clock
from laxity.paper.result import Result, Row
from laxity.paper.tintin_table3 import (
    APP,
    DISCARD,
    EAGER,
    LAZY,
    Setup,
    claims,
    judged,
    measure,
    suspected,
    verdict,
)
from laxity.sim import windows
from laxity.sim.baselines import SortedNoWait, UnsortedDiscard
from laxity.sim.retained import Terms, rows_of
from laxity.sim.revise import Reviser, once_whole
from laxity.sim.slices import Slices
from laxity.sim.workload.columns import DAY_US, HOUR_US
from laxity.sim.workload.town import Town, town

SMALL = Town(
    days=12, max_late_days=6, late_share=0.05, lost_share=0.02, outage_days=1, broken_share=1,
    silent_share=0.4,
)  # fmt: skip
TINY = Setup(meters=(60, 120), town=Town(days=30, max_late_days=20, broken_share=0.3))
FLUSH: list[tuple[int, Any]] = [(0, 0), (HOUR_US, 999), (2 * HOUR_US, 0), (99 * HOUR_US, 0)]
END = 10**6  # the key of a row after which nothing waits


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return measure(TINY, seed=7)


def fed(rows: dict[str, Any], taker: Any) -> list[windows.Row]:
    """The results about meters when they are fed with all rows, and one to end with."""
    columns = (rows["event_us"].tolist(), rows["meter"].tolist(), rows["kwh"].tolist())
    stream = [windows.Row(*row) for row in zip(*columns, strict=True)]
    stream.append(windows.Row(max(stream)[0] + 50 * DAY_US, END, 0.0))
    return [result for row in stream for result in taker.take(row) if result.key != END]


@pytest.mark.parametrize("seed", [1, 2])
def test_same_as_algorithm_1(seed: int) -> None:
    """The short cut and the whole town fed to the reviser come to the same counts."""
    (block,) = town(seed, 6, SMALL)
    columns = block.rows()
    order = np.lexsort((columns["meter"], columns["event_us"]))
    strict = fed({name: column[order] for name, column in columns.items()}, SortedNoWait(APP))
    terms = Terms(SMALL.max_late_days * DAY_US, period_us=HOUR_US)
    triggers: dict[str, Trigger] = {EAGER: eager, LAZY: once_whole(lazy, APP.shape)}
    told = {
        how: fed(columns, Reviser(APP, terms, trigger, FLUSH)) for how, trigger in triggers.items()
    }
    told[DISCARD] = fed(columns, UnsortedDiscard(APP))
    got = judged([suspected(block)], clock([block]), SMALL)
    assert got == {how: verdict(strict, results) for how, results in told.items()}
    assert got[EAGER]["duplicate"] > got[LAZY]["duplicate"]
    assert got[DISCARD]["omitted"] > 0


@pytest.mark.parametrize("trigger", [eager, lazy])
def test_slices_of_history_tell_every_alert_and_none_twice(trigger: Trigger) -> None:
    """A batch a day: what Laxity does, where TinTiN repeats what has not changed."""
    (block,) = town(1, 6, SMALL)
    columns = block.rows()
    in_order = np.lexsort((columns["meter"], columns["event_us"]))
    strict = fed({name: column[in_order] for name, column in columns.items()}, SortedNoWait(APP))
    slices = Slices(APP, Terms(SMALL.max_late_days * DAY_US, period_us=HOUR_US), trigger)
    rows = rows_of(*(columns[name] for name in ("meter", "event_us", "kwh")))
    day = (columns["arrival_us"] - columns["event_us"].min()) // DAY_US
    batches = [rows.take(day == today) for today in range(day.max() + 1)]
    batches.append(rows_of([END], [columns["event_us"].max() + 50 * DAY_US], [0.0]))
    answers = [answer for batch in batches for answer in slices.batch(batch).answers]
    told = [windows.Row(a.ts_us, a.key, a.value) for a in answers if a.value is not None]
    got = verdict(strict, told)
    assert got["exact"] == len(strict) > 100
    assert got["omitted"] == got["duplicate"] == 0
    assert len(fed(columns, UnsortedDiscard(APP))) < len(strict)  # it took late readings


def test_meters_without_an_invalid_hour_have_no_alerts() -> None:
    (block,) = town(5, 4, Town(days=20, broken_share=0, excess_share=0, late_share=0.05))
    assert suspected(block).kwh.shape[0] == 0
    assert fed(block.rows(), UnsortedDiscard(APP)) == []


def test_a_verdict_counts_every_telling() -> None:
    def alerts(*told: tuple[int, str, float]) -> list[windows.Row]:
        return [windows.Row(ts, 0, (kind, value)) for ts, kind, value in told]

    strict = alerts(
        (1, "pattern", 2), (2, "pattern", 1), (2, "excess", 150.0), (3, "excess", 120.0)
    )
    told = alerts(
        (1, "pattern", 1),  # different
        (2, "pattern", 1),
        (1, "pattern", 2),
        (2, "pattern", 1),  # duplicate
        (2, "excess", 150.0),
        (9, "negative", -1.0),  # strict knows nothing of it
        (1, "pattern", 1),  # different again
    )
    assert verdict(strict, told) == Counter(exact=3, omitted=1, different=3, duplicate=1)


def test_every_claim_holds_in_small_towns(rows: list[Row]) -> None:
    assert [claim.claim for claim in claims(rows) if not claim.holds] == []
    assert [row["meters"] for row in rows] == [60] * 3 + [120] * 3


def test_a_seed_gives_the_same_counts() -> None:
    one, again, other = (measure(replace(TINY, meters=(20,)), seed) for seed in (7, 7, 8))
    assert one == again
    assert one != other


def test_each_claim_fails_on_rows_that_contradict_it(rows: list[Row]) -> None:
    def doctored(how: str, **change: int) -> list[str]:
        changed = [row | change if row["how"] == how else row for row in rows]
        return [claim.claim for claim in claims(changed) if not claim.holds]

    assert doctored(EAGER, omitted=1) == ["neither trigger omits a result, in any town"]
    assert doctored(LAZY, omitted=1) == ["neither trigger omits a result, in any town"]
    assert doctored(LAZY, duplicate=10**6) == ["lazy repeats at least ten times less than eager"]
    assert doctored(EAGER, duplicate=0) == ["lazy repeats at least ten times less than eager"]
    assert doctored(DISCARD, omitted=0) == ["discarding omits results"]


def test_it_is_drawn_from_its_rows(rows: list[Row], work: Path) -> None:
    result = Result(
        id="tintin-table3",
        scale="quick",
        seed=7,
        versions={},
        config=asdict(TINY),
        rows=rows,
        claims=[],
    )
    assert draw(result, work).read_bytes().startswith(b"\x89PNG")
