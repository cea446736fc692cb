from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from laxity.core.join import joined
from laxity.paper.figure import draw
from laxity.paper.result import Result, Row, column
from laxity.paper.ssg_fig9 import Setup, claims, compared, measure

TINY = Setup(seconds=10, nodes=(1, 2, 4))


def holding(rows: list[Row]) -> list[bool]:
    return [claim.holds for claim in claims(rows)]


def test_rows_and_comparisons_grow_with_the_nodes() -> None:
    rows = measure(TINY, seed=7)
    assert holding(rows) == [True, True, True]
    assert max(column(rows, "processed")) < column(rows, "offered")[0]  # capacity binds
    assert measure(TINY, seed=7) == rows
    assert measure(TINY, seed=8) != rows


def test_dear_reading_eats_the_gain() -> None:
    assert holding(measure(replace(TINY, read_us=5_000), seed=7)) == [False, False, False]


def test_enough_nodes_leave_nothing_to_gain() -> None:
    rows = measure(replace(TINY, compare_us=1), seed=7)
    assert column(rows, "processed")[0] >= 0.98 * column(rows, "offered")[0]
    assert holding(rows) == [False, False, True]


def test_same_as_oracle_the_rows_each_row_is_compared_with() -> None:
    rng = np.random.default_rng(5)
    event_us = np.sort(rng.integers(0, 500, 400))
    side, area = rng.integers(0, 2, 400), rng.integers(0, 3, 400)
    pairs = joined(event_us, side, area, within_us=50)
    later = np.bincount(np.maximum(pairs.left, pairs.right), minlength=400)
    assert compared(event_us, side, area, within_us=50).tolist() == later.tolist()


def test_it_is_drawn_from_its_rows(work: Path) -> None:
    rows = measure(TINY, seed=7)
    result = Result(
        id="ssg-fig9",
        scale="quick",
        seed=7,
        versions={},
        config=asdict(TINY),
        rows=rows,
        claims=claims(rows),
    )
    assert draw(result, work).read_bytes().startswith(b"\x89PNG")
