"""Figs. 12 and 13 on a fifth of the rows, delayed five times as long each."""

import subprocess
import sys
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest

from laxity.paper import ssg_fig12, ssg_fig13
from laxity.paper.figure import draw
from laxity.paper.result import Result, Row, Value, column, where
from laxity.paper.slack_rules import HIGH, LOW, MAX, QUANTILE, TCP, TUNER, claims, measure

PERIODS = replace(
    ssg_fig12.SCALES["quick"], rate_per_s=100, delay="zipf:20s,1.0,90ms;50s,0.35,18ms"
)
GROWING = replace(ssg_fig13.SCALES["quick"], rate_per_s=100, delay="growing:5ms", seconds=135)


@pytest.fixture(scope="module")
def periods() -> list[Row]:
    return measure(PERIODS, seed=7)


@pytest.fixture(scope="module")
def growing() -> list[Row]:
    return measure(GROWING, seed=7)


def failing(rows: list[Row]) -> list[str]:
    return [claim.claim for claim in claims(rows) if not claim.holds]


def test_every_claim_holds_when_a_source_is_slow_in_periods(periods: list[Row]) -> None:
    assert [row["rule"] for row in periods[::140]] == [LOW, HIGH, MAX, TCP, QUANTILE, TUNER]
    assert failing(periods) == []


def test_every_claim_holds_when_a_source_falls_behind(growing: list[Row]) -> None:
    assert failing(growing) == []
    assert ssg_fig13.claims(growing) == ssg_fig12.claims(growing) == claims(growing)


def test_tuned_slack_does_not_swing(periods: list[Row], growing: list[Row]) -> None:
    for rows in (periods, growing):
        slack_s = column(where(rows, rule=TUNER), "slack_s")
        assert sum(a != b for a, b in pairwise(slack_s)) <= 6


def test_patience_reads_nothing_early_and_finds_what_there_is(periods: list[Row]) -> None:
    high = where(periods, rule=HIGH)
    assert sum(column(high, "slack_read")) == 0
    assert max(column(periods, "events_so_far")) == column(high, "events_so_far")[-1]


def test_a_seed_gives_the_same_rows(growing: list[Row]) -> None:
    assert measure(GROWING, seed=7) == growing


def test_each_claim_fails_on_rows_that_contradict_it(periods: list[Row]) -> None:
    def doctored(rule: str, **change: Value) -> list[str]:
        return failing([row | change if row["rule"] == rule else row for row in periods])

    assert "no more than 1 %" in doctored(TUNER, missed=True)[0]
    assert doctored(HIGH, missed=False)[0] == "Static High violates the deadline"
    assert doctored(MAX, missed=False)[0] == "Max Timestamp violates the deadline"
    assert doctored(LOW, slack_read=0) == [
        "of the rules that keep it, SLTuner reads the fewest slack-ready rows"
    ]
    assert doctored(TCP, events=99) == [
        "of the rules that keep it, SLTuner detects the most events"
    ]
    late = "TCP reacts after the fact, SLTuner does not have to"
    assert doctored(TCP, cuts_on_rise=0) == doctored(TUNER, cuts_on_miss=1) == [late]


def test_they_are_drawn_from_their_rows(periods: list[Row], growing: list[Row], work: Path) -> None:
    for name, setup, rows in (("ssg-fig12", PERIODS, periods), ("ssg-fig13", GROWING, growing)):
        result = Result(
            id=name,
            scale="quick",
            seed=7,
            versions={},
            config=asdict(setup),
            rows=rows,
            claims=[],
        )
        assert draw(result, work).read_bytes().startswith(b"\x89PNG")


def test_naming_the_figures_imports_neither_plots_nor_sklearn() -> None:
    program = (
        "import sys, laxity.paper.ssg_fig12, laxity.paper.ssg_table1;"
        "sys.exit(bool({'matplotlib', 'sklearn'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
