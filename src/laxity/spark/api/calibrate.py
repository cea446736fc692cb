"""Record how a pipeline answers to slack, for a tuner that is to be warm from the first second."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from laxity.core.history import Points, Recorded, points_of, save_history
from laxity.core.merge import MergeState
from laxity.core.slack import Fixed, SlackRule
from laxity.durations import Duration
from laxity.errors import ConfigError
from laxity.spark.api.query import Query
from laxity.spark.api.sinks import parquet
from laxity.spark.engine.branch import Branch
from laxity.spark.engine.sink import Sink
from laxity.spark.merging.merge import Merge
from laxity.spark.merging.tuning import merge_of, operator
from laxity.spark.storage.checkpoint import read_last_commit
from laxity.spark.storage.files import LocalFiles

Told = Callable[[str], None]


class Stream(Protocol):
    """What can be started, as `lx.merge` makes it."""

    @property
    def branch(self) -> Branch:
        """Its inputs and stages."""

    def start(self, name: str, *, sink: Sink, checkpoint: str) -> Query:
        """Start it."""


def calibrate(
    build: Callable[[SlackRule], Stream],
    slacks: Sequence[Duration],
    *,
    seconds: float,
    out: str | Path,
    told: Told = lambda text: None,
) -> dict[str, Points]:
    """Run a pipeline at one slack after the other, and save what was seen for `Tuned(history=)`.

    Parameters
    ----------
    build
        Makes the stream with the slack rule it is given, for each of its merges. Results go to a
        folder of this machine that is deleted.
    slacks
        The slacks to try.
    seconds
        How long each run lasts, from its first batch.
    out
        The file that the history goes to.
    told
        Called with a line of text when a run begins.

    Returns
    -------
    dict
        What was seen, by merge: the last is `"merge"`, others have the name of their stream.

    Raises
    ------
    ConfigError
        If there are no slacks, the stream is not made by `laxity.merge`, or a run was too short to
        teach anything.

    >>> calibrate(lambda slack: stream, ["1s"], seconds=0, out="history.json")
    Traceback (most recent call last):
    laxity.errors.ConfigError: seconds must be > 0, got 0
    """
    if not slacks:
        raise ConfigError("calibrate needs at least one slack")
    if seconds <= 0:
        raise ConfigError(f"seconds must be > 0, got {seconds}")
    history: dict[str, Points] = {}
    for n, slack in enumerate(slacks, start=1):
        told(f"slack {slack}, run {n} of {len(slacks)}")
        for name, points in _points(build(Recorded(Fixed(slack))), seconds).items():
            history[name] = history.get(name, ()) + points
    if not all(history.values()):
        raise ConfigError(f"{seconds} s taught nothing: run it for longer")
    save_history(out, history)
    return history


def _points(stream: Stream, seconds: float) -> dict[str, Points]:
    if merge_of(stream.branch) is None:
        raise ConfigError("calibrate needs a stream that lx.merge makes with the slack it is given")
    with tempfile.TemporaryDirectory(prefix="laxity-calibrate-") as folder:
        query = stream.start(
            "calibrate", sink=parquet(f"{folder}/out"), checkpoint=f"{folder}/checkpoint"
        )
        try:
            for _ in range(600):
                if query.await_termination(0.1) or query.reports(last=1):
                    break
            query.await_termination(seconds)
        finally:
            query.stop()
        commit = read_last_commit(LocalFiles(f"{folder}/checkpoint"))
    memories = {} if commit is None else commit.memories
    return {
        operator(branch): points_of(_remembered(memories.get(branch.label(Merge.name), {})))
        for branch in stream.branch.walk()
    }


def _remembered(memory: dict[str, Any]) -> list[list[int]]:
    points: list[list[int]] = MergeState.model_validate(memory).rule.get("points", [])
    return points
