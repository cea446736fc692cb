"""Drivers in processes of their own, killed and started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from laxity.spark.storage.checkpoint import commit_ids
from laxity.spark.storage.files import LocalFiles

CHILD = Path(__file__).with_name("crash_child.py")
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
MOST_TELLING = ["commit.draft"]
RANDOM_KILLS = 15


def start(folder: Path, pipeline: str, *kill: str) -> subprocess.Popen[str]:
    """A driver in a process group of its own, so that Java dies with it when it is to."""
    return subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), pipeline, *kill],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # it imports what we do
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(child: subprocess.Popen[str]) -> str:
    """What it said, once it is over."""
    _, told = child.communicate(timeout=240)
    return told


def to_the_end(folder: Path, pipeline: str) -> None:
    """A driver that nobody kills."""
    child = start(folder, pipeline)
    told = ended(child)
    assert child.returncode == 0, told


def killed_at_points(folder: Path, pipeline: str, points: Sequence[str] = POINTS) -> None:
    """Only the Python half is killed; the next start has to outwait the dying Java."""
    for n, point in enumerate(points):
        child = start(folder, pipeline, point, str(n))
        told = ended(child)
        assert child.returncode == -signal.SIGKILL, f"{point} was not reached: {told}"


def killed_at_random(folder: Path, pipeline: str, n_kills: int = RANDOM_KILLS) -> None:
    """Both halves are killed, in turns: some time after the start, some time after a commit."""
    rng = np.random.default_rng(15)
    checkpoint = LocalFiles(str(folder / "checkpoint"))
    n_before = (commit_ids(checkpoint) or [-1])[-1]
    for n in range(n_kills):
        before = commit_ids(checkpoint)[-1:]
        child = start(folder, pipeline)
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
    assert n_commits >= n_kills // 2, "too few kills fell between commits"
