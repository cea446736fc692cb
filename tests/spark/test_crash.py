"""Crash anywhere: the driver is killed, started again, and nothing is lost or doubled."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import traces
from laxity.core.ledger import Ledger
from laxity.core.report import Report
from laxity.spark.checkpoint import commit_ids, read_last_commit
from laxity.spark.files import LocalFiles
from laxity.spark.reports import read_reports

pytestmark = pytest.mark.crash

CHILD = Path(__file__).with_name("crash_child.py")
ROWS_PER_FILE = 60
POINTS = [
    "intake.enter",
    "output.enter",
    "output.exit",  # the output is durable, the batch is not
    "state.exit",
    "commit.draft",  # inside the commit: written, not yet in place
    "commit.exit",
    "clean.delete",  # half-way through the clean-up
    "clean.exit",  # between our commit and Spark's
]
RANDOM_KILLS = 15


def start(folder: Path, *kill: str) -> subprocess.Popen[str]:
    """A driver in a process group of its own, so that Java dies with it when it is to."""
    return subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), *kill],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # it imports what we do
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(child: subprocess.Popen[str]) -> str:
    _, told = child.communicate(timeout=240)
    return told


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


def to_the_end(folder: Path) -> None:
    child = start(folder)
    told = ended(child)
    assert child.returncode == 0, told


def killed_at_points(folder: Path) -> None:
    """Only the Python half is killed; the next start has to outwait the dying Java."""
    for n, point in enumerate(POINTS):
        child = start(folder, point, str(n))
        told = ended(child)
        assert child.returncode == -signal.SIGKILL, f"{point} was not reached: {told}"


def killed_at_random(folder: Path) -> None:
    """Both halves are killed, in turns: some time after the start, some time after a commit."""
    rng = np.random.default_rng(15)
    checkpoint = LocalFiles(str(folder / "checkpoint"))
    n_before = (commit_ids(checkpoint) or [-1])[-1]
    for n in range(RANDOM_KILLS):
        before = commit_ids(checkpoint)[-1:]
        child = start(folder)
        assert child.stderr is not None
        for line in child.stderr:
            if line.startswith("laxity contract"):
                break
        until = time.monotonic() + (60 if n % 2 else rng.uniform(0.0, 2.5))
        while time.monotonic() < until and commit_ids(checkpoint)[-1:] == before:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.5))
        assert child.poll() is None, "it ended before it was killed: the trace is too short"
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
    n_commits = commit_ids(checkpoint)[-1] - n_before
    assert n_commits >= RANDOM_KILLS // 2, "too few kills fell between commits"


Runs = tuple[dict[str, Any], dict[str, Any], int]  # what is left: calm, killed; and how many rows


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((killed_at_points, 10), id="points"),
        pytest.param((killed_at_random, 22), id="random", marks=pytest.mark.long),
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
        to_the_end(calm)
        kill(killed)
        to_the_end(killed)
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
