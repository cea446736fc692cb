import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from laxity.paper import ssg_fig4
from laxity.paper.figure import draw
from laxity.paper.result import Result, Row, column, read_result, where
from laxity.paper.ssg_fig4 import Setup, claims, measure

ONE_PERIOD = Setup(seconds=70, thresholds_s=(1, 5, None))


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return measure(ONE_PERIOD, seed=7)


def failing(rows: list[Row]) -> list[str]:
    return [claim.claim for claim in claims(rows) if not claim.holds]


def test_every_claim_holds_in_one_period(rows: list[Row]) -> None:
    assert len(rows) == 3 * 70 // 5
    assert failing(rows) == []


def test_a_seed_gives_the_same_rows(rows: list[Row]) -> None:
    again = measure(Setup(seconds=70, thresholds_s=(5,)), seed=7)
    assert again == where(rows, threshold_s=5)
    assert measure(Setup(seconds=70, thresholds_s=(5,)), seed=8) != again


def test_without_end_nothing_is_early_and_nothing_late(rows: list[Row]) -> None:
    patient = where(rows, threshold_s=None)
    assert sum(column(patient, "out_of_order")) == sum(column(patient, "slack_read")) == 0
    assert sum(column(where(rows, threshold_s=1), "slack_read")) > 0


def test_each_claim_fails_on_rows_that_contradict_it(rows: list[Row]) -> None:
    def doctored(**change: float) -> list[str]:
        return failing([{**row, **change} for row in rows])

    assert "falls seconds behind" in doctored(bus_lag_s=0.5)[0]
    assert len(doctored(latency_max_s=9.0)) == 2  # not steady, and no higher in the slow periods
    assert doctored(events=3) == ["small thresholds detect fewer events"]
    assert "small thresholds read more rows out of order" in doctored(out_of_order=10)
    assert "mostly in periods of high delay" in doctored(out_of_order=10)[-1]


def test_a_stored_result_is_drawn_without_running(
    rows: list[Row], work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Result(
        id="ssg-fig4",
        scale="quick",
        seed=7,
        versions={},
        config=asdict(ONE_PERIOD),
        rows=rows,
        claims=[],
    ).save(work)
    monkeypatch.setattr(ssg_fig4, "measure", None)
    picture = draw(read_result(stored), work)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_running_needs_no_plotting_library() -> None:
    program = "import sys, laxity.paper.ssg_fig4; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
