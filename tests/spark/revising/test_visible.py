"""How late a row is, as the simulator says; and which rows a batch may look at."""

from typing import Any

import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from laxity.core.holes import BEGINNING
from laxity.sim.retained import LATE, ON_TIME, TOO_LATE, Retained, Terms, rows_of
from laxity.spark.revising.marks import NEW, OLD, WAITED
from laxity.spark.revising.visible import VisibleRows, lateness, too_late
from support.worlds import World, drawn, frame, in_one_job, same_in_all, uncounted

pytestmark = pytest.mark.spark

TIMES = st.integers(-40, 40)
MARKS = {"on_time": ON_TIME, "late": LATE, "too_late": TOO_LATE}


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    made = st.builds(
        uncounted,
        span_us=st.just(4),
        lateness_us=st.integers(0, 12),
        before_us=st.just(BEGINNING) | TIMES,
        newest_us=st.just(40),
    )
    return drawn(made, 8)


def around(world: World) -> list[int]:
    """Times on all sides of what divides them, and far from it."""
    edges = world.before_us, world.before_us - world.lateness_us
    near = (
        {us + off for us in edges for off in (-1, 0, 1)} if world.before_us > BEGINNING else set()
    )
    return sorted(near | {-(10**9), -41, -1, 0, 41, 10**9})


@pytest.fixture(scope="module")
def rows(spark: SparkSession, worlds: list[World]) -> list[DataFrame]:
    """A row at each of the times."""
    all_times = [enumerate(around(world)) for world in worlds]
    return [frame(spark, [(nr, (us,)) for nr, us in times], "us bigint") for times in all_times]


def mark(world: World, us: int) -> str:
    """On time, late or too late."""
    sim = Retained(world.moment.shape, Terms(world.lateness_us))
    sim.newest_us = world.before_us
    (one,) = sim.judge(rows_of([0], [us], [None]))
    (name,) = (name for name, known in MARKS.items() if known == one)
    return name


def test_sim_equals_spark_in_how_late_a_row_is(worlds: list[World], rows: list[DataFrame]) -> None:
    """Each of the conditions holds alone: no row is in two classes, or in none."""
    found = in_one_job(
        of.selectExpr("*", *(f"{holds} AS {name}" for name, holds in lateness(w.moment).items()))
        for w, of in zip(worlds, rows, strict=True)
    )

    def got(told: Any) -> list[str]:
        return [name for name in MARKS if told[0][name]]

    times = [around(world) for world in worlds]
    same_in_all(found, times, got, lambda world, us: [mark(worlds[world], us)])


def test_a_row_too_late_is_told_by_how_much(worlds: list[World], rows: list[DataFrame]) -> None:
    found = in_one_job(too_late(of, w.moment) for w, of in zip(worlds, rows, strict=True))

    def late_by(world: int, us: int) -> list[float]:
        behind_us = worlds[world].before_us - us
        return [behind_us / 1e6] if mark(worlds[world], us) == "too_late" else []

    times = [around(world) for world in worlds]
    same_in_all(found, times, lambda told: [row["late_by"] for row in told], late_by)


@pytest.fixture(scope="module")
def visible(spark: SparkSession) -> VisibleRows:
    """Rows that came: late at -6 and 4, on time at 5 and 6; kept ones, and one that waited."""
    world = uncounted(span_us=4, lateness_us=11, before_us=5, newest_us=6)
    came, recent, waited = (
        frame(spark, [(nr, (us,)) for nr, us in enumerate(times)], "us bigint")
        for times in ([-7, -6, 4, 5, 6], [2, 5], [-9])
    )
    return VisibleRows(world.moment, came, recent, waited)


def times(rows: DataFrame) -> list[int]:
    return sorted(row["us"] for row in rows.collect())


def test_all_but_rows_too_late_are_accepted_and_marked(visible: VisibleRows) -> None:
    """One that waited is accepted however late it is by now."""
    marked = visible.accepted.select("us", OLD, NEW, WAITED)
    assert sorted(tuple(row) for row in marked.collect()) == [
        (-9, False, True, True),
        (-6, False, True, False),
        (2, True, False, False),
        (4, False, True, False),
        (5, False, False, False),
        (5, True, False, False),
        (6, False, False, False),
    ]


def test_without_tables_there_is_what_came(visible: VisibleRows) -> None:
    alone = VisibleRows(visible.moment, visible.came, None, None)
    assert times(alone.accepted) == [-6, 4, 5, 6]
    assert times(alone.on_time) == times(alone.present(None)) == [5, 6]


def test_rows_on_time_and_recent_and_due_are_present(visible: VisibleRows) -> None:
    due = visible.came.where("us = 4")
    assert times(visible.present(None)) == [2, 5, 5, 6]
    assert times(visible.present(due)) == [2, 4, 5, 5, 6]
