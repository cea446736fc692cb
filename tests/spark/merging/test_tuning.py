"""A tuned merge on Spark: what it remembers, what it refuses, and what it starts from."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.core.history import Point, load_history
from laxity.core.merge import MergeState, MergeTerms
from laxity.core.operators import Operator
from laxity.core.slack import SlackRule
from laxity.core.tuner import tuning_of
from laxity.errors import ConfigError
from laxity.spark.engine.branch import Branch
from laxity.spark.merging.merge import Merge
from laxity.spark.merging.tuning import fitted_in_background, merge_of
from laxity.spark.storage.checkpoint import read_last_commit
from laxity.spark.storage.files import LocalFiles
from support import feeds, traces

pytestmark = pytest.mark.spark


def two(spark: SparkSession, folder: Path) -> list[Any]:
    return [feeds.source(spark, folder / name) for name in ("bus", "scats")]


def fed(work: Path) -> Path:
    bus, scats = feeds.lagging()
    feeds.feed(work / "bus", bus, [20, 40])
    feeds.feed(work / "scats", scats, [20, 40])
    return work


def tuners() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("laxity-tuner")]


def all_ended() -> bool:
    """Whether the threads that make models have ended, or do so soon: nobody waits for them."""
    for thread in tuners():
        thread.join(timeout=10)
    return not tuners()


def test_a_tuned_merge_remembers_what_it_saw_and_says_why(spark: SparkSession, work: Path) -> None:
    fed(work)
    query = traces.run(lx.merge(*two(spark, work), slack=lx.Tuned("1h")), work)
    commit = read_last_commit(LocalFiles(str(work / "checkpoint")))
    assert commit is not None
    memory = MergeState.model_validate(commit.memories["merge"])
    assert tuning_of(memory.rule).slacks_us == {"merge": 900_000_000}
    first = query.reports()[0]
    assert [d.what for d in first.decisions] == ["frontier", "slack"]
    assert first.decisions[1].why == "too few points for a model"
    assert [(p.name, p.bound) for p in first.promises] == [("deadline", 3600)]
    assert sum(report.stages["merge"]["ready"] for report in query.reports()) > 0
    assert memory.n_read == query.reports()[-1].rows.released
    assert all_ended()


def test_a_deadline_below_the_floor_is_refused_with_what_was_measured(
    spark: SparkSession, work: Path
) -> None:
    fed(work)
    stream = lx.merge(*two(spark, work), slack=lx.Tuned("20ms"))
    with pytest.raises(ConfigError, match="deadline 20ms is shorter .* measured to take .*ms"):
        stream.start("late", sink=lx.memory(), checkpoint=str(work / "c"), trigger="1s")
    assert not (work / "c" / "floor").exists()
    later = lx.merge(*two(spark, work), slack=lx.Tuned("1h"))
    query = later.start("late", sink=lx.memory(), checkpoint=str(work / "c"), trigger="1s")
    query.stop()
    assert all_ended()


def test_models_are_made_in_a_thread_that_ends_when_told() -> None:
    point = Point(0, 1, 1, 0, 0, 0, 1, 1, 0)
    branch, end = fitted_in_background(Branch((), (Merge(("bus",), MergeTerms(lx.Tuned("6s"))),)))
    merge = merge_of(branch)
    assert merge is not None
    rule = merge.rule.rule
    assert isinstance(rule, lx.Tuned)
    assert rule.fitting is not None
    assert rule.fitting.latest("merge", Operator(), (point,)) is None
    assert len(tuners()) == 1
    end()
    assert all_ended()


def test_two_deadlines_are_one_too_many(spark: SparkSession, work: Path) -> None:
    with pytest.raises(ConfigError, match="deadline 5s is not that of the tuned slack, 6s"):
        lx.merge(*two(spark, fed(work)), slack=lx.Tuned("6s"), deadline="5s")


@pytest.mark.long
def test_calibrate_records_points_for_a_tuner_to_start_from(
    spark: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laxity.spark.merging.merge.WARM_UP", 0)
    told: list[str] = []

    def build(slack: SlackRule) -> lx.Stream:
        return lx.merge(*live(spark), slack=slack)

    out = work / "history.json"
    history = lx.calibrate(build, ["1s", "2s"], seconds=6, out=out, told=told.append)
    assert told == ["slack 1s, run 1 of 2", "slack 2s, run 2 of 2"]
    assert {point.slack_us for point in history["merge"]} == {1_000_000, 2_000_000}
    assert json.loads(out.read_text())["version"] == 1
    assert load_history(out) == history
    assert lx.Tuned("6s", history=out).tuner.history == history


def live(spark: SparkSession) -> list[Any]:
    sources = []
    for name in ("bus", "scats"):
        trace = spark.readStream.format("laxity.trace").option("pace", "live")
        rows = trace.options(generator=f"laxity.sim.workload:{name}").option("arg.seconds", 90)
        sources.append(lx.source(name, rows.load(), event_time="event", arrival="arrival"))
    return sources


@pytest.mark.parametrize(
    ("slacks", "seconds", "says"),
    [([], 1, "at least one slack"), (["1s"], 0, "seconds must be > 0, got 0")],
)
def test_bad_calibration_is_refused(
    spark: SparkSession, work: Path, slacks: list[str], seconds: float, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        lx.calibrate(lambda slack: lx.merge(slack=slack), slacks, seconds=seconds, out=work / "h")
