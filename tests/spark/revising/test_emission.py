"""The status of a first answer: final where no row can change it that may still come."""

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from laxity.core.holes import BEGINNING, END, Holes
from laxity.spark.revising.emission import with_status
from laxity.spark.revising.holes import Keys
from laxity.spark.revising.marks import KEY, OPEN
from support.one_key import Hole
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

WORLDS = [
    by_period(1, span_us=5, lateness_us=20, before_us=-9, newest_us=9),
    by_sequence(span_us=1, lateness_us=20, before_us=0, newest_us=12),
]
RESULTS_US = range(-12, 13)
OPEN_COLUMNS = (
    f"{OPEN} array<struct<lo: bigint, hi: bigint, first_us: bigint, last_us: bigint, "
    "listed: boolean>>"
)


def holes(ends: list[tuple[int, int, bool]]) -> list[Hole]:
    """Holes of some length; a key's first one may have no beginning, and its last one no end."""
    found = [Hole(us, us + length + 2, us + 1, us + 1 + length) for us, length, _ in ends]
    if found and ends[0][2]:
        found[0] = found[0]._replace(lo=BEGINNING, first_us=BEGINNING)
    if found and ends[-1][2]:
        found[-1] = found[-1]._replace(hi=END, last_us=END)
    return found


ENDS = st.tuples(st.integers(-16, 16), st.integers(0, 4), st.booleans())
OF_A_KEY = st.lists(ENDS, max_size=3).map(holes)


@pytest.fixture(scope="module")
def cases() -> list[list[list[Hole]]]:
    return [drawn(OF_A_KEY, 60) for _ in WORLDS]


def answers(spark: SparkSession, n_keys: int) -> DataFrame:
    """A result of each key at each time."""
    rows = [(nr, (us, nr)) for nr in range(n_keys) for us in RESULTS_US]
    return frame(spark, rows, "us bigint, value int")


def keys_with(spark: SparkSession, world: World, of: list[list[Hole]]) -> Keys:
    """Every second key with holes is found out; so are some keys without any result."""
    rows = [(nr, ([(*hole, False) for hole in some],)) for nr, some in enumerate(of)]
    known = frame(spark, rows, OPEN_COLUMNS).withColumn(KEY, world.places.key)
    return Keys(known, len(of), dict)


def statuses(rows: Any) -> dict[int, str]:
    return {row["us"]: row["_status"] for row in rows}


def may_change(world: World, of: list[Hole]) -> dict[int, str]:
    """As core tells it: whether rows may be missing at a time that a result depends on."""
    columns = np.array(of, np.int64).reshape(-1, 4).T
    missing = Holes(np.zeros(len(of), np.int64), *columns).missing()
    us = np.array(RESULTS_US, np.int64)
    met = missing.meet(np.zeros(us.size, np.int64), us - 1, us + world.span_us - 1)
    return {int(at): "tentative" if is_met else "final" for at, is_met in zip(us, met, strict=True)}


def test_same_as_core_which_answers_are_final(
    spark: SparkSession, cases: list[list[list[Hole]]]
) -> None:
    found = in_one_job(
        with_status(
            answers(spark, len(of)), keys_with(spark, world, of), world.places, world.moment
        )
        for world, of in zip(WORLDS, cases, strict=True)
    )
    same_in_all(found, cases, statuses, lambda nr, of: may_change(WORLDS[nr], of))
    assert {row["_revision"] for rows in found[0].values() for row in rows} == {0}


def test_answers_keep_their_columns(spark: SparkSession) -> None:
    world = WORLDS[0]
    given = answers(spark, 1)
    first = with_status(given, keys_with(spark, world, [[]]), world.places, world.moment)
    assert first.columns == [*given.columns, "_status", "_revision"]


def test_keys_that_are_not_in_doubt_have_final_answers(spark: SparkSession) -> None:
    """Whether none is, or others are."""
    world, hole = WORLDS[0], Hole(-5, 5, -4, 4)
    nobody = with_status(answers(spark, 4), None, world.places, world.moment)
    others = Keys(keys_with(spark, world, [[hole]] * 2).rows, 2, dict)
    found = in_one_job([nobody, with_status(answers(spark, 4), others, world.places, world.moment)])
    assert {row["_status"] for rows in found[0].values() for row in rows} == {"final"}
    assert {row["_status"] for nr in (2, 3) for row in found[1][nr]} == {"final"}
    assert {row["_status"] for nr in (0, 1) for row in found[1][nr]} == {"final", "tentative"}


def test_where_rows_are_not_counted_no_answer_is_final(spark: SparkSession) -> None:
    (found,) = in_one_job(
        [with_status(answers(spark, 2), None, UNCOUNTED.places, UNCOUNTED.moment)]
    )
    assert {row["_status"] for rows in found.values() for row in rows} == {"tentative"}
