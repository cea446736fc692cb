"""Checkpoints that the version before wrote go on: `tests/data/format_7` holds two of its own.

They were made from the first two files of each source below. Paths in Spark's own log are written
as if all lay in `/format-7`.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.spark.storage.checkpoint import read_last_commit
from laxity.spark.storage.commit import FORMAT
from laxity.spark.storage.files import LocalFiles
from support import feeds, readings, traces

pytestmark = pytest.mark.spark

DATA = Path(__file__).parents[2] / "data" / "format_7"
MISSING = (1, 9, 10)
READINGS = [(m, h, h + m) for h in range(24) for m in (1, 2, 3)]
LATE = [(2, 17, 19), (3, 12, 15), MISSING]


def unpacked(name: str, work: Path) -> Path:
    """A checkpoint and its results, where its sources are."""
    folder = work / name
    shutil.copytree(DATA / name, folder)
    for log in (folder / "checkpoint/spark").rglob("*"):
        if log.is_file():
            text = log.read_text().replace(f"file:///format-7/{name}", folder.as_uri())
            log.write_text(text)
    return folder


def halves(folder: Path, columns: feeds.Columns, cut: int) -> None:
    feeds.write(folder, 0, {name: column[:cut] for name, column in columns.items()})
    feeds.write(folder, 1, {name: column[cut:] for name, column in columns.items()})


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["bus"]["id"], row["scats"]["id"]))


def joined(spark: SparkSession, folder: Path) -> lx.Stream:
    halves(folder / "bus", feeds.rows(range(20)), 10)
    halves(folder / "scats", feeds.rows([n + 0.5 for n in range(5)], first_id=100), 3)
    feeds.write(folder / "scats", 2, feeds.rows([n + 0.5 for n in range(5, 25)], first_id=105))
    inputs = [feeds.source(spark, folder / name) for name in ("bus", "scats")]
    return lx.merge(*inputs, slack=None).join("bus", "scats", on="area", within="3s")


def revised(spark: SparkSession, folder: Path) -> lx.Stream:
    readings.write(folder / "in", 0, [row for row in READINGS if row not in LATE])
    readings.write(folder / "in", 1, [LATE[0], (1, 24, 1)])
    readings.write(folder / "in", 2, [*LATE[1:], *((m, h, 1) for h in (25, 26) for m in (1, 2, 3))])
    app = lx.App(readings.totals, windows=readings.TOTALS)
    terms: dict[str, Any] = {"lateness": "20h", "period": "1h", "trigger": "lazy"}
    return readings.stream(spark, folder / "in").revise(app, by="meter", **terms)


def test_a_merge_and_its_join_go_on(spark: SparkSession, work: Path) -> None:
    folder = unpacked("joined", work)
    query = traces.run(joined(spark, folder), folder)
    again = traces.run(joined(spark, work / "anew"), work / "anew")
    assert in_order(feeds.written(folder / "out")) == in_order(feeds.written(work / "anew/out"))
    assert query.report().ledger == again.report().ledger
    commit = read_last_commit(LocalFiles(str(folder / "checkpoint")))
    assert commit is not None
    assert (commit.format, {*commit.tables}) == (FORMAT, {"merge-held", "join-window"})


def test_a_revise_goes_on_with_all_it_has_kept(spark: SparkSession, work: Path) -> None:
    folder = unpacked("revised", work)
    report = traces.run(revised(spark, folder), folder).report()
    given = [*READINGS, (1, 24, 1), *((m, h, 1) for h in (25, 26) for m in (1, 2, 3))]
    assert readings.newest(feeds.written(folder / "out")) == readings.plain_totals(given)
    assert report.ledger.rows_in == len(given)
    assert report.accounts["revise"].held == report.ledger.held == 0


@pytest.mark.long
def test_nothing_of_an_old_folder_is_left_once_no_commit_needs_it(
    spark: SparkSession, work: Path
) -> None:
    folder = unpacked("revised", work)
    stream = revised(spark, folder)
    for hour in range(27, 72, 5):
        rows = [(m, h, 1) for h in range(hour, hour + 5) for m in (1, 2, 3)]
        readings.write(folder / "in", hour, rows)
    traces.run(stream, folder)
    left = {path.name for path in (folder / "checkpoint/state").iterdir() if [*path.iterdir()]}
    assert all(name.startswith("revise-") for name in left), left
