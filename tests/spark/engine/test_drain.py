"""The end of the input: a run says what is left, and a drain lets everything out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.core.merge import DRAINED
from laxity.core.report import Report
from support import crashes, feeds, readings, traces

pytestmark = pytest.mark.spark

CHECKPOINT, OUT = "checkpoint", "out"


def merged(spark: SparkSession, work: Path) -> lx.Stream:
    return lx.merge(*(feeds.source(spark, work / name) for name in ("bus", "scats")), slack=None)


def end(stream: lx.Stream, work: Path, drain: bool = True) -> Report:
    """Run to the end; the last report."""
    query = stream.start(
        "end",
        sink=lx.parquet(str(work / OUT)),
        checkpoint=str(work / CHECKPOINT),
        trigger="available_now",
        drain=drain,
    )
    assert query.await_termination(120)
    report = query.report()
    assert report is not None
    return report


def ids(work: Path) -> list[int]:
    rows = feeds.written(work / OUT)
    return [row[name]["id"] for row in rows for name in ("bus", "scats") if row[name]]


@pytest.fixture
def behind(work: Path) -> Path:
    """One source is far behind the other, so that most rows wait."""
    feeds.feed(work / "bus", feeds.rows(range(20)), [10])
    feeds.feed(work / "scats", feeds.rows(range(5), first_id=100), [3])
    return work


def test_a_run_says_what_it_leaves_and_a_drain_lets_it_out(
    spark: SparkSession, behind: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = end(merged(spark, behind), behind, drain=False)
    assert (report.ledger.released, report.ledger.held) == (8, 17)
    assert "laxity: end ended with merge: 17 rows held" in capfd.readouterr().err
    report = end(merged(spark, behind), behind)  # nothing new has come
    assert (report.ledger.released, report.ledger.held, report.drained) == (25, 0, True)
    assert report.decisions[0].why.startswith(DRAINED)
    assert sorted(ids(behind)) == [*range(20), *range(100, 105)]
    assert "ended with" not in capfd.readouterr().err


def test_a_drained_merge_gives_all_rows_in_order(spark: SparkSession, behind: Path) -> None:
    end(merged(spark, behind), behind)
    rows = feeds.written(behind / OUT)
    assert {row["_read"] for row in rows} == {"ready"}
    keys = [(row["_event"], row["_source"] == "scats") for row in rows]
    assert keys == sorted(keys)


def test_what_a_later_run_brings_behind_a_drain_is_late(spark: SparkSession, behind: Path) -> None:
    end(merged(spark, behind), behind)
    feeds.write(behind / "scats", 7, feeds.rows([7, 30], first_id=200))
    end(merged(spark, behind), behind)
    reads = {
        row["scats"]["id"]: row["_read"] for row in feeds.written(behind / OUT) if row["scats"]
    }
    assert (reads[200], reads[201]) == ("late", "ready")


@pytest.mark.parametrize(
    "point", ["commit.enter", pytest.param("output.exit", marks=pytest.mark.long)]
)
def test_a_crash_before_the_drain_leaves_it_to_the_next_run(
    spark: SparkSession, behind: Path, point: str
) -> None:
    before = end(merged(spark, behind), behind, drain=False).batch_id
    for n_tries in range(1, 3):  # the heartbeat makes a batch of its own first, or does not
        with crashes.crashing(before + n_tries, point), pytest.raises(Exception):  # noqa: B017, PT011
            end(merged(spark, behind), behind)
    report = end(merged(spark, behind), behind)
    assert (report.drained, report.ledger.released, report.ledger.held) == (True, 25, 0)
    assert sorted(ids(behind)) == [*range(20), *range(100, 105)]


def test_a_live_query_is_drained_and_ends(spark: SparkSession, behind: Path) -> None:
    query = traces.live(merged(spark, behind), behind)
    traces.await_that(query, lambda report: report.ledger.rows_in == 25)
    query.drain()
    assert not query.is_active
    report = query.report()
    assert (report.drained, report.ledger.held) == (True, 0)


def test_only_a_run_that_ends_can_be_drained_at_its_end(spark: SparkSession, work: Path) -> None:
    with pytest.raises(lx.ConfigError, match=r"needs trigger=.available_now.; a live query"):
        merged(spark, work).start(
            "live", sink=lx.memory(), checkpoint=str(work / "c"), trigger="1s", drain=True
        )


def revised(spark: SparkSession, work: Path, **terms: Any) -> lx.Stream:
    app = lx.App(readings.totals, windows=readings.TOTALS)
    given = {"by": "meter", "lateness": "12h"} | terms
    return readings.stream(spark, work / "in").revise(app, **given)


def all_totals(given: Sequence[readings.Reading]) -> dict[tuple[int, int], tuple[int, int]]:
    """The totals of all readings, also those whose windows were not over."""
    last = max(hour for _, hour, _ in given)
    known = [*given, *((-1, last + readings.SPAN + h, 0) for h in range(2))]
    return {k: v for k, v in readings.plain_totals(known).items() if k[0] >= 0 and k[1] <= last}


@pytest.mark.parametrize("terms", [{}, {"period": "1h", "trigger": "lazy"}])
def test_a_drained_revise_has_answered_everything_for_good(
    spark: SparkSession, work: Path, terms: dict[str, str]
) -> None:
    rows = [(meter, hour, hour + meter) for hour in range(20) for meter in (1, 2)]
    missing, late = (1, 9, 10), (2, 17, 19)
    readings.write(work / "in", 0, [row for row in rows if row not in (missing, late)])
    readings.write(work / "in", 1, [late])
    report = end(revised(spark, work, **terms), work)
    results = feeds.written(work / OUT)
    assert readings.newest(results) == all_totals([row for row in rows if row != missing])
    assert (report.ledger.held, report.stages["revise"]["kept"]) == (0, 0)
    assert report.stages["revise"]["final_us"] == readings.START_US + 19 * readings.HOUR_US
    last = [row for row in results if readings.hour_of(row["_event"]) > 15]
    assert {row["_status"] for row in last} <= {"final", "revised"}


def test_rows_behind_a_drained_revise_are_rejected_and_later_ones_answered(
    spark: SparkSession, work: Path
) -> None:
    first = [(1, hour, 1) for hour in range(10)]
    readings.write(work / "in", 0, first)
    end(revised(spark, work, period="1h"), work)
    later = [(1, hour, 1) for hour in range(10, 30)]
    readings.write(work / "in", 1, [(1, 4, 50), (1, 9, 50), *later])
    report = end(revised(spark, work, period="1h"), work)
    assert report.ledger.late_rejected == 2
    newest = readings.newest(feeds.written(work / OUT))
    assert newest == all_totals(first) | {
        name: value for name, value in all_totals(later).items() if name[1] >= 10
    }


def test_nothing_at_all_can_be_drained(spark: SparkSession, work: Path) -> None:
    report = end(revised(spark, work, period="1h"), work)
    assert (report.drained, report.ledger.rows_in) == (True, 0)
