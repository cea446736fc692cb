"""The two steps of a stage: what rides on a job is known after it, and never waited for in vain."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.errors import EngineError
from support import stages, traces

pytestmark = pytest.mark.spark


@pytest.fixture
def source(spark: SparkSession, work: Path) -> lx.Stream:
    trace = traces.write_trace(work / "trace.parquet", traces.clean_rows(200))
    return lx.stream(traces.trace_source(spark, trace, 80))


def test_counts_that_ride_on_the_output_may_decide_on_dead_letters(
    spark: SparkSession, source: lx.Stream, work: Path
) -> None:
    query = traces.run(traces.with_stage(source, stages.Reject()), work)
    ledger = query.report().ledger
    assert (ledger.rows_in, ledger.released, ledger.dead) == (200, 180, 20)
    letters = lx.read_letters(str(work / "checkpoint"), spark=spark)
    assert letters.where("_reason = 'a tenth'").count() == 20


def test_what_rides_on_a_job_cannot_be_asked_for_before_it(source: lx.Stream, work: Path) -> None:
    with pytest.raises(EngineError, match="asked for before it has run: measure them"):
        traces.run(traces.with_stage(source, stages.Reject(early=True)), work)


def test_rows_that_nobody_reads_are_not_waited_for_for_ever(
    source: lx.Stream, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laxity.spark.rows.measure.PATIENCE_S", 0.2)
    with pytest.raises(EngineError, match="no job has read them"):
        traces.run(traces.with_stage(source, stages.Reject(unread=True)), work)


def test_a_stage_that_did_not_say_so_is_told_no_numbers(source: lx.Stream, work: Path) -> None:
    behind = traces.with_stage(traces.with_stage(source, stages.Reject()), stages.Asks())
    with pytest.raises(lx.StateError, match=r"asks for numbers of its rows: say so in needs\(\)"):
        traces.run(behind, work)


def test_two_stages_may_call_their_tables_alike(source: lx.Stream, work: Path) -> None:
    first, second = stages.Hold(name="first"), stages.Hold(wait_us=stages.SECOND, name="second")
    query = traces.run(traces.with_stage(traces.with_stage(source, first), second), work)
    ledger, accounts = query.report().ledger, query.report().accounts
    assert accounts["first"].rows_in == ledger.rows_in == 200
    assert accounts["second"].rows_in == accounts["first"].released
    assert ledger.held == accounts["first"].held + accounts["second"].held > 0


def test_a_stage_that_miscounts_is_told_by_the_next(source: lx.Stream, work: Path) -> None:
    leaks = traces.with_stage(source, stages.Leak())
    with pytest.raises(lx.ContractError, match="ledger of stage leak does not add up: 80 rows in"):
        traces.run(traces.with_stage(leaks, stages.Hold()), work)
