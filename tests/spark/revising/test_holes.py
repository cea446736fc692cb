"""A key's holes as SQL finds them are those of `laxity.core.holes`, told all of the key's rows."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from laxity.core.holes import BEGINNING, END, Holes
from laxity.spark.revising.holes import N_BETWEEN, found_out, left_behind
from laxity.spark.revising.marks import LEAVING, OPEN
from support.one_key import Hole, Key, Row, as_told, counted, held, holes_of, keys, seen_rows
from support.worlds import COUNTED, UNCOUNTED, drawn, in_one_job, same_in_all

pytestmark = pytest.mark.spark

OF_ROW = ["_event", "id"]


@pytest.fixture(scope="module")
def cases() -> list[list[Key]]:
    """In the first a late row that is not recent ends a hole; in the fifth none has a number."""
    found = [drawn(keys(world, unnumbered=True), 60) for world in COUNTED]
    late = [Row(-5, -5, "due"), Row(-3, -3, "due"), Row(0, 0, "on time")]
    found[0].append(Key(COUNTED[0], [Row(-8, -8)], [], late))
    found[4].append(Key(COUNTED[4], [Row(None, -3)], [], [Row(5, 2, "on time")]))
    return found


@pytest.fixture(scope="module")
def found(spark: SparkSession, cases: list[list[Key]]) -> Any:
    return in_one_job(
        found_out(seen_rows(spark, world, of), world.places, world.moment, OF_ROW)
        .selectExpr("*", f"{N_BETWEEN} AS n", f"{left_behind(world.places, world.moment)} AS left")
        .drop("_key")
        for world, of in zip(COUNTED, cases, strict=True)
    )


def present(key: Key) -> list[Row]:
    """Its rows of the last span before the batch, and since."""
    there = [row for row in key.seen if row.mark in ("old", "on time", "due")]
    return [row for row in there if row.us > key.world.moment.answered_us]


def all_holes(key: Key) -> Holes:
    """The holes between all rows of the key; if all that is counted is forgotten it begins anew."""
    known = key.history if counted(key.kept) else []
    newest_us = max((row.us for row in counted(known)), default=BEGINNING)
    due = [row for row in key.came if row.mark == "due"]
    last = [row for row in due if key.is_fresh and row.us > newest_us]
    return holes_of(key.world, [*known, *last, *present(key)])


def open_holes(key: Key) -> Holes:
    """Those that are open and near recent rows, if there are any."""
    moment, holes = key.world.moment, all_holes(key)
    near = holes.last_us > moment.answered_us - moment.span_us
    return holes.take((holes.last_us >= moment.open_us) & near & bool(present(key)))


def listed(holes: Any) -> list[Hole]:
    return sorted(Hole(*hole[:4]) for hole in holes)


def test_same_as_core_which_holes_are_open(found: Any, cases: list[list[Key]]) -> None:
    def holes(rows: Any) -> list[Hole]:
        return [hole for row in rows for hole in listed(row[OPEN])]

    same_in_all(found, cases, holes, lambda _, key: as_told(open_holes(key)))


def test_same_as_core_which_rows_are_needed_by_what_may_come(
    found: Any, cases: list[list[Key]]
) -> None:
    """Of those that are not recent any more after the batch."""

    def needed(_: int, key: Key) -> list[int]:
        moment = key.world.moment
        leaving = [row for row in present(key) if row.us <= moment.watermark_us]
        near = held(open_holes(key), key.world, leaving, moment.open_us)
        return [nr for nr, row in enumerate(key.seen) if row in near]

    def leaving(rows: Any) -> list[int]:
        return sorted(one["id"] for row in rows for one in row[LEAVING])

    same_in_all(found, cases, leaving, needed)


def test_a_hole_is_noted_once_its_first_neighbour_is_not_recent(
    found: Any, cases: list[list[Key]]
) -> None:
    def left(_: int, key: Key) -> list[Hole]:
        moment, margin_us = key.world.moment, key.world.places.margin_us
        begins = [hole.lo for hole in key.noted]
        fresh = [h for h in as_told(open_holes(key)) if h.lo not in begins and h.hi != END]
        behind = [r.at for r in key.came if r.mark == "due" and r.us <= moment.answered_us]
        late = [h for h in fresh if h.hi in behind]  # noted as the new holes of late rows
        left = [h for h in fresh if h.first_us - margin_us <= moment.watermark_us]
        return [h for h in left if h not in late]

    same_in_all(found, cases, lambda rows: [h for row in rows for h in listed(row["left"])], left)


def test_holes_between_rows_are_counted(found: Any, cases: list[list[Key]]) -> None:
    def between(_: int, key: Key) -> int:
        holes = as_told(open_holes(key))
        return sum(hole.lo != BEGINNING and hole.hi != END for hole in holes)

    same_in_all(found, cases, lambda rows: sum(row["n"] for row in rows), between)


def fates(key: Key) -> tuple[list[int], int, int, int, int]:
    """The times of a key's late rows that are due; how many are due, wait, are dead, are behind."""
    marks = [row.mark for row in key.came]
    due_us = [row.us for row in key.came if row.mark == "due"]
    behind = sum(us <= key.world.moment.answered_us for us in due_us)
    waiting = marks.count("waiting") + marks.count("waited")
    return sorted(set(due_us)), len(due_us), waiting, marks.count("dead"), behind


def told_fates(rows: Any) -> Any:
    (row,) = rows
    return row["_late"], row["due"], row["waiting"], row["dead"], row["behind"]


def test_late_rows_of_a_key_are_counted_by_fate(found: Any, cases: list[list[Key]]) -> None:
    same_in_all(found, cases, told_fates, lambda _, key: fates(key))


def test_where_rows_are_not_counted_only_late_ones_are_told(spark: SparkSession) -> None:
    cases = [drawn(keys(UNCOUNTED), 60)]
    rows = seen_rows(spark, UNCOUNTED, cases[0])
    told = found_out(rows, UNCOUNTED.places, UNCOUNTED.moment, OF_ROW).drop("_key")
    assert told.columns == [*UNCOUNTED.places.by, "_late", "due", "waiting", "dead", "behind"]
    same_in_all(in_one_job([told]), cases, told_fates, lambda _, key: fates(key))
