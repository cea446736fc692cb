"""Merges and a revise behind them, killed again and again: the last answers are exact."""

from pathlib import Path

import numpy as np
import pytest

from laxity.spark.storage.checkpoint import read_last_commit
from laxity.spark.storage.files import LocalFiles
from support import feeds, readings
from support.killing import killed_at_points, to_the_end

pytestmark = [pytest.mark.crash, pytest.mark.long]

SOURCES = ("north", "south", "east")
POINTS = ("output.exit", "commit.draft", "commit.exit")
N_FILES = 6
HOURS = 6  # a file


def arrive(folder: Path) -> list[readings.Reading]:
    """Readings of two meters a source; the south comes a file late, one in ten two files late."""
    rng = np.random.default_rng(4)
    given = []
    for n, name in enumerate(SOURCES):
        files: list[list[readings.Reading]] = [[] for _ in range(N_FILES)]
        for hour in range(N_FILES * HOURS):
            for meter in (2 * n, 2 * n + 1):
                late = int(name == "south") + (2 if rng.random() < 0.1 else 0)
                if (file := hour // HOURS + late) < N_FILES:
                    files[file].append((meter, hour, int(rng.integers(1, 9))))
        for at, rows in enumerate(files):
            readings.write(folder / name, at, rows)
        given += [row for rows in files for row in rows]
    return given


def test_killed_again_and_again_the_last_answers_are_those_of_plain_python(
    java_classes: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLASSES", str(java_classes))
    given = arrive(work)
    killed_at_points(work, "revise", POINTS)
    to_the_end(work, "revise")
    answers = readings.newest(feeds.written(work / "out"))
    last = max(hour for _, hour in answers)
    want = readings.plain_totals(given)
    assert answers == {name: value for name, value in want.items() if name[1] <= last}
    assert last > (N_FILES - 3) * HOURS
    commit = read_last_commit(LocalFiles(str(work / "checkpoint")))
    assert commit is not None
    assert commit.ledger.rows_in - commit.ledger.made == len(given)
    assert any(row["_revision"] for row in feeds.written(work / "out"))
