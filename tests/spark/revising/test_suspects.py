"""Which keys are in doubt: bits and sums say what looking at all rows in order would say."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from laxity.spark.revising.marks import FRESH, LATELY, NEW, NOTED, OLD, ON_TIME
from laxity.spark.revising.suspects import late_keys, summed, suspects
from support.one_key import Hole, Key, Row, counted, holes_of, keys, seen_rows
from support.worlds import (
    UNCOUNTED,
    World,
    by_period,
    by_sequence,
    drawn,
    frame,
    in_one_job,
    same_in_all,
)

pytestmark = pytest.mark.spark

WORLDS = [  # places on both sides of zero, and of a block of 64
    by_period(3, span_us=9, lateness_us=20, before_us=-2, newest_us=5),
    by_period(3, span_us=9, lateness_us=20, before_us=190, newest_us=196),
    by_period(1, span_us=9, lateness_us=20, before_us=-64, newest_us=-62),
    by_sequence(span_us=9, lateness_us=20, before_us=0, newest_us=4),
]
HOLED = WORLDS[:3]  # in the last no hole was left behind
HOLE_COLUMNS = "_lo bigint, _hi bigint, _first_us bigint, _last_us bigint"


@dataclass(frozen=True)
class Case:
    """The rows of a key that are not kept as contexts, and its holes left behind."""

    rows: list[Row]
    noted: list[Hole]

    def marked(self, *marks: str) -> list[Row]:
        """Those with one of the marks."""
        return [row for row in self.rows if row.mark in marks]


def cases(world: World) -> st.SearchStrategy[Case]:
    """Mostly rows without a gap up to the newest event, with one thing wrong or none."""
    return st.integers(0, 2**32 - 1).map(lambda seed: _case(world, np.random.default_rng(seed)))


def _case(world: World, rng: np.random.Generator) -> Case:
    rows, wrong = _whole(world, rng), rng.choice(["", "gone", "twice", "off", "late", "void"])
    at, us, mark = rows.pop(int(rng.integers(len(rows))))
    off, late = int(rng.choice([-1, 1])), str(rng.choice(["due", "waited"]))
    instead = {
        "": [Row(at, us, mark)],
        "gone": [],
        "twice": [Row(at, us, mark), Row(at, us, "on time")],
        "off": [Row((at or 0) + off, us if world.numbered else us + off, mark)],
        "late": [Row(at, us, late)],
        "void": [Row(None if world.numbered else at, us, mark)],
    }
    last_us = world.moment.answered_us - world.span_us + int(rng.integers(-2, 4))
    noted = [Hole(last_us - 9, last_us + 1, last_us - 8, last_us)] * int(rng.integers(3) == 0)
    if wrong == "void" and world.numbered and rng.random() < 1 / 2:
        rows = [row._replace(at=None if row.mark == "old" else row.at) for row in rows]
    return Case(rows + instead[str(wrong)], noted if world in HOLED else [])


def _whole(world: World, rng: np.random.Generator) -> list[Row]:
    n_rows, step = int(rng.choice([1, 1, 2, 3, 5, 12, 70])), world.places.step or 1
    last_us = world.newest_us - int(rng.choice([0, 0, 0, 1]))
    back = np.arange(n_rows)[::-1] * step
    if world.numbered:
        back = np.cumsum(rng.integers(0, 3, n_rows))[::-1]
    first = int(rng.choice([-68, -3, 0, 60]))
    places = [
        (first + nr if world.numbered else us, us)
        for nr, us in enumerate((last_us - back + back[-1]).tolist())
    ]
    return [Row(at, us, "old" if us <= world.before_us else "on time") for at, us in places]


def holed(spark: SparkSession, of: list[Case]) -> DataFrame | None:
    """The table of holes, if there is one."""
    holes = [(nr, tuple(hole)) for nr, case in enumerate(of) for hole in case.noted]
    return frame(spark, holes, HOLE_COLUMNS) if holes else None


def found_in(spark: SparkSession, world: World, of: list[Case]) -> DataFrame:
    """The keys in doubt."""
    rows = [
        (nr, (row.at, row.us, row.mark == "old", row.mark in ("due", "waited")))
        for nr, case in enumerate(of)
        for row in case.rows
    ]
    known = world.places.of(
        frame(spark, rows, f"n bigint, us bigint, {OLD} boolean, {NEW} boolean")
    )
    holes = holed(spark, of)
    keys = summed(known, holes, world.places, world.moment)
    columns = ["_key.*", FRESH, LATELY, ON_TIME, NOTED]
    return suspects(keys, holes, world.places, world.moment).select(columns)


@pytest.fixture(scope="module")
def drawn_cases() -> list[list[Case]]:
    """The first has no rows, only a hole."""
    holes = [[Hole(0, 9, 1, world.newest_us)] if world in HOLED else [] for world in WORLDS]
    return [
        [Case([], noted), *drawn(cases(world), 150)]
        for world, noted in zip(WORLDS, holes, strict=True)
    ]


@pytest.fixture(scope="module")
def found(spark: SparkSession, drawn_cases: list[list[Case]]) -> Any:
    return in_one_job(
        found_in(spark, world, of) for world, of in zip(WORLDS, drawn_cases, strict=True)
    )


def is_suspect(world: World, case: Case) -> bool:
    """Whether anything about a key is not as it should be."""
    moment, step, places = world.moment, world.places.step or 1, [row.at for row in case.rows]
    if not places:
        return False
    numbers = sorted(at for at in places if at is not None)
    whole = len(numbers) == len(places)
    whole = whole and numbers == [numbers[0] + step * nr for nr in range(len(numbers))]
    goes_on = max(case.rows, key=lambda row: (row.at or 0, row.us)).us >= moment.newest_us
    near = any(hole.last_us > moment.answered_us - moment.span_us for hole in case.noted)
    late = case.marked("due", "waited")
    return not (whole and goes_on and case.marked("old") and not late and not near)


def test_same_as_oracle_which_keys_are_in_doubt(found: Any, drawn_cases: list[list[Case]]) -> None:
    def told(world: int, case: Case) -> list[tuple[Any, ...]]:
        """Whether it is fresh and has late rows, how many came on time, and its holes."""
        is_fresh = not counted(case.marked("old"))
        late, on_time = bool(case.marked("due", "waited")), len(case.marked("on time"))
        one = is_fresh, late, on_time, case.noted
        return [one] if is_suspect(WORLDS[world], case) else []

    def got(rows: Any) -> list[tuple[Any, ...]]:
        return [(*(row[name] for name in (FRESH, LATELY, ON_TIME)), row[NOTED]) for row in rows]

    same_in_all(found, drawn_cases, got, told)


def test_core_sees_no_hole_between_rows_of_a_key_above_suspicion(
    found: Any, drawn_cases: list[list[Case]]
) -> None:
    """Nothing is missing but what may have been before and what may come."""
    clean = [
        (world, case)
        for world, of, rows in zip(WORLDS, drawn_cases, found, strict=True)
        for nr, case in enumerate(of)
        if case.rows and nr not in rows
    ]
    assert len(clean) > 50
    assert {len(holes_of(world, case.rows).key) for world, case in clean} == {2}


def test_where_rows_are_not_counted_keys_with_late_rows_are_in_doubt(spark: SparkSession) -> None:
    of = drawn(keys(UNCOUNTED), 100)
    rows = seen_rows(spark, UNCOUNTED, of).where(f"NOT {OLD}")
    columns = ["_key.*", FRESH, LATELY, ON_TIME, NOTED]
    found = in_one_job([late_keys(rows, UNCOUNTED.places).select(columns)])

    def told(_: int, key: Key) -> list[tuple[Any, ...]]:
        n_on_time = sum(row.mark == "on time" for row in key.came)
        return [(False, True, n_on_time, None)] if n_on_time < len(key.came) else []

    def got(rows: Any) -> list[tuple[Any, ...]]:
        return [tuple(row[name] for name in (FRESH, LATELY, ON_TIME, NOTED)) for row in rows]

    same_in_all(found, [of], got, told)
