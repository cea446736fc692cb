"""Revise on Spark is what the simulator says, for any app, rows, batches and crash."""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import laxity as lx
from laxity.durations import show_us
from laxity.spark.api.sinks import MemorySink
from laxity.spark.api.stream import Stream
from laxity.spark.revising import retained as history
from laxity.spark.rows import materialize as keep
from laxity.spark.storage import state
from support import readings, revise_cases, traces
from support.crashes import CrashError, crashing
from support.revise_cases import Case, Told

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def revised(spark: SparkSession, folder: Path, case: Case) -> Stream:
    terms = case.terms
    return readings.stream(spark, folder).revise(
        revise_cases.on_spark(case.app),
        by="meter",
        lateness=show_us(terms.lateness_us),
        period=show_us(terms.period_us) if terms.period_us else None,
        sequence="n" if terms.numbered else None,
        trigger=case.trigger,
    )


def answers(sink: MemorySink, n_batches: int) -> list[list[tuple[Told, str]]]:
    """What was told in each batch, with status."""
    told = []
    for n in range(n_batches):
        rows = sink.batches[n].to_pylist() if n in sink.batches else []
        times = [(row["_event"] - EPOCH) // timedelta(microseconds=1) for row in rows]
        names = [(row["meter"], us, row.get("kind")) for row, us in zip(rows, times, strict=True)]
        told.append(
            [
                (Told(*name, row["value"], row["_revision"]), row["_status"])
                for name, row in zip(names, rows, strict=True)
            ]
        )
    return told


GENERATE: dict[str, Any] = {
    "phases": [Phase.generate],
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
}


@settings(max_examples=settings().max_examples // 50, **GENERATE)
@given(case=revise_cases.cases(), in_driver=st.booleans())
def test_any_app_any_rows_any_batching_any_crash(
    spark: SparkSession, case: Case, in_driver: bool
) -> None:
    check(spark, case, in_driver)


@pytest.mark.long
@settings(max_examples=settings().max_examples // 12, **GENERATE)
@given(case=revise_cases.cases(), in_driver=st.booleans())
def test_any_app_any_rows_any_batching_any_crash_at_length(
    spark: SparkSession, case: Case, in_driver: bool
) -> None:
    check(spark, case, in_driver)


def check(spark: SparkSession, case: Case, in_driver: bool) -> None:
    """Spark tells what the simulator tells, and final is what never changes."""
    with TemporaryDirectory() as name, ExitStack() as stack:
        for module in (keep, state, history):  # elsewhere executors could be lost with their rows
            stack.enter_context(patch.object(module, "in_one_process", lambda _: in_driver))
        work, sink = Path(name), lx.memory()
        revise_cases.write(work / "in", case)
        with crashing(*case.crash), pytest.raises(CrashError):
            traces.run(revised(spark, work / "in", case), work, sink)
        query = traces.run(revised(spark, work / "in", case), work, sink)
        told, reports = answers(sink, len(case.batches)), query.reports()
    assert [{one for one, _ in batch} for batch in told] == revise_cases.simulated(case)
    for n, batch in enumerate(told):
        assert len(batch) == len({one for one, _ in batch})
        later = [one for some in told[n + 1 :] for one, _ in some]
        assert all(one.us > reports[n].stages["revise"]["final_us"] for one in later)
        final = {one[:3] for one, status in batch if status == "final"}
        assert not final & {one[:3] for one in later}
    assert reports[-1].ledger.released == sum(map(len, case.batches))
