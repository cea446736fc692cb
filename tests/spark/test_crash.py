"""Crash anywhere: the driver is killed, started again, and nothing is lost or doubled."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laxity.core.ledger import Ledger
from laxity.core.report import Report
from laxity.spark.storage.checkpoint import read_last_commit
from laxity.spark.storage.files import LocalFiles
from laxity.spark.storage.reports import read_reports
from support import traces
from support.killing import MOST_TELLING, killed_at_points, killed_at_random, to_the_end

pytestmark = pytest.mark.crash

ROWS_PER_FILE = 60
SOAK = pytest.mark.soak


def durable(folder: Path) -> dict[str, Any]:
    """What a run has left, but for how it was cut into batches.

    A kill between the file source's log and Spark's own makes the next batch one of two files; so
    rows that are late must be so by more than a file.
    """
    files = LocalFiles(str(folder / "checkpoint"))
    commit = read_last_commit(files)
    assert commit is not None
    letters = {
        kind: [
            {name: row[name] for name in row if name not in ("batch_id", "late_by")}
            for segment in commit.tables[kind].segments
            for row in rows_in(folder / "checkpoint" / "state" / kind / str(segment.batch_id))
        ]
        for kind in ("dead", "late")
    }
    return {
        "output": sorted(rows_in(folder / "out"), key=lambda row: row["id"]),
        "ledger": commit.ledger,
        "memories": commit.memories["hold"],
        "dead": sorted(letters["dead"], key=lambda row: row["_row"]),
        "late": sorted(letters["late"], key=lambda row: row["_row"]),
        "reports": _reported([r for r in read_reports(files) if r.rows.rows_in]),
    }


def _reported(reports: list[Report]) -> dict[str, Any]:
    ids = [report.batch_id for report in reports]
    rows = sum(report.rows.rows_in for report in reports)
    return {"each once": ids == sorted(set(ids)), "rows": rows}


def rows_in(folder: Path) -> list[dict[str, Any]]:
    table: Any = pq.read_table(folder, partitioning=None)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


Runs = tuple[dict[str, Any], dict[str, Any], int]  # what is left: calm, killed; and how many rows


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((partial(killed_at_points, points=MOST_TELLING), 10), id="points"),
        pytest.param((killed_at_points, 10), id="all points", marks=pytest.mark.long),
        pytest.param((killed_at_random, 22), id="random", marks=pytest.mark.long),
        pytest.param((partial(killed_at_random, n_kills=100), 140), id="often", marks=SOAK),
    ],
)
def runs(
    request: pytest.FixtureRequest, java_classes: Path, tmp_path_factory: pytest.TempPathFactory
) -> Runs:
    """An undisturbed run, and one that is killed again and again."""
    kill, n_files = request.param
    root = tmp_path_factory.mktemp("runs")
    calm, killed = root / "calm", root / "killed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLASSES", str(java_classes))
        for folder in (calm, killed):
            write_input(folder / "input", n_files)
        to_the_end(calm, "hold")
        kill(killed, "hold")
        to_the_end(killed, "hold")
    return durable(calm), durable(killed), n_files * ROWS_PER_FILE


def write_input(folder: Path, n_files: int) -> None:
    """Input files, one a batch."""
    folder.mkdir(parents=True)
    rows = pa.table(traces.dirty_rows(n_files * ROWS_PER_FILE, every=100))
    for n in range(n_files):
        path = folder / f"{n:03}.parquet"
        pq.write_table(rows.slice(n * ROWS_PER_FILE, ROWS_PER_FILE), path)
        os.utime(path, (1_700_000_000 + n, 1_700_000_000 + n))


def test_the_undisturbed_run_is_what_the_input_says(runs: Runs) -> None:
    calm, _, n_rows = runs
    ledger: Ledger = calm["ledger"]
    assert ledger.rows_in == n_rows
    assert ledger.released == len(calm["output"]) == len({row["id"] for row in calm["output"]})
    assert ledger.dead == len(calm["dead"]) > 0
    assert ledger.late_rejected == len(calm["late"]) > 0
    assert ledger.held > 0
    assert calm["reports"] == {"each once": True, "rows": n_rows}


@pytest.mark.parametrize("what", ["output", "ledger", "memories", "dead", "late", "reports"])
def test_crash_anywhere_nothing_lost_nothing_twice(runs: Runs, what: str) -> None:
    calm, killed, _ = runs
    assert killed[what] == calm[what]
