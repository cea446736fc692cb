"""The tuner: what a decision costs beside a batch, and whether making models lengthens batches."""

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

import laxity as lx
from bench.line import Line
from laxity.core.history import Point, Points
from laxity.core.slack import Memory, Seen, SlackRule
from laxity.core.tuned import Tuned

SECONDS = 20
WARM = 5  # batches of a run that do not count
TURNS = 2
S = 1_000_000


def run() -> Iterator[Line]:
    yield Line("a decision with 100 points, ms", 1000 * _decision_s(), at_most=50)
    spark = lx.session("laxity bench")
    ratios, shares = [], []
    for turn in range(TURNS + 1):
        with tempfile.TemporaryDirectory() as folder:
            fixed_s = _batch_s(spark, Path(folder) / "fixed", lx.Fixed("3s"))
            tuned_s = _batch_s(spark, Path(folder) / "tuned", lx.Tuned("15s", history=_history()))
        if turn:  # the first one warms Java up
            ratios.append(tuned_s / fixed_s)
            shares.append(_decision_s() / tuned_s)
    what = "a batch with a tuner that keeps making models (time / with a fixed slack)"
    yield Line(what, statistics.median(ratios), at_most=1.25)
    yield Line("a decision (time / a batch)", statistics.median(shares), at_most=0.05)


def _history() -> Points:
    """A hundred seconds in which a source lags and catches up again."""
    points = []
    for n in range(100):
        slack_us, lag_us = (n % 10) * S // 2, abs(n % 40 - 20) * S // 3
        wait_us = min(slack_us, lag_us)
        early = 500 if lag_us > slack_us else 0
        points.append(Point(n * S, S, S, slack_us, lag_us, lag_us, 1000, wait_us + S, early))
    return tuple(points)


def _decision_s() -> float:
    """One `next` of a tuner that has its models, in a second of its own."""
    rule = Tuned("15s", history=_history())
    memory: Memory = {}
    seen = Seen(1000, latency_us=3 * S, newest_us=0, lag_us=4 * S, n_read=1000, n_slack=100)
    times = []
    for n in range(12):
        now = replace(seen, now_us=n * S, newest_us=n * S)
        began = time.perf_counter()
        _, memory = rule.next(memory, now)
        times.append(time.perf_counter() - began)
    return statistics.median(times[2:])


def _batch_s(spark: SparkSession, work: Path, slack: SlackRule) -> float:
    """The median batch of a live merge."""
    sources = []
    for name in ("bus", "scats"):
        trace = spark.readStream.format("laxity.trace").option("pace", "live")
        rows = trace.options(generator=f"laxity.sim.workload:{name}").option("arg.seconds", 90)
        sources.append(lx.source(name, rows.load(), event_time="event", arrival="arrival"))
    query = lx.merge(*sources, slack=slack, deadline="15s").start(
        "bench", sink=lx.parquet(f"{work}/out"), checkpoint=f"{work}/checkpoint"
    )
    for _ in range(600):
        if query.await_termination(0.1) or len(query.reports(last=WARM)) == WARM:
            break
    query.await_termination(SECONDS)
    query.stop()
    reports = [report for report in query.reports()[WARM:] if report.rows.rows_in]
    return statistics.median(report.duration_s for report in reports)
