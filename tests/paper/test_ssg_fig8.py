from dataclasses import asdict
from pathlib import Path

from laxity.paper.figure import draw
from laxity.paper.result import Result, Row
from laxity.paper.ssg_fig8 import CONTENDERS, Setup, claims, measure

TINY = Setup(rows_per_writer=200, readers=(1, 2), repeats=2, level_rows=50)


def rows(ssg_us: float, scalegate_us: float, kslack_us: float) -> list[Row]:
    times_us = {"SSG": ssg_us, "ScaleGate": scalegate_us, "K-slack": kslack_us}
    return [
        {"structure": name, "readers": readers, "read_us": us, "least_us": us, "most_us": us}
        for readers in (1, 8)
        for name, us in times_us.items()
    ]


def holding(rows: list[Row]) -> list[bool]:
    return [claim.holds for claim in claims(rows)]


def test_every_structure_is_read_to_the_end_by_every_number_of_readers() -> None:
    measured = measure(TINY, seed=1)
    assert [(row["readers"], row["structure"]) for row in measured] == [
        (readers, name) for readers in TINY.readers for name in CONTENDERS
    ]
    assert all(float(row["read_us"] or 0) > 0 for row in measured)


def test_claims_follow_the_times() -> None:
    assert holding(rows(1.1, 1.0, 20.0)) == [True, True, True]
    assert holding(rows(2.0, 1.0, 20.0)) == [False, True, True]
    assert holding(rows(1.0, 1.0, 1.2)) == [True, False, True]
    assert holding(rows(15.0, 15.0, 90.0)) == [True, True, False]


def test_it_is_drawn_from_its_rows(work: Path) -> None:
    result = Result(
        id="ssg-fig8",
        scale="full",
        seed=1,
        versions={},
        config=asdict(TINY) | {"readers": [1, 8]},
        rows=rows(1, 1, 9),
        claims=[],
    )
    assert draw(result, work).read_bytes().startswith(b"\x89PNG")
