"""A stage that only a test package knows, with its report and metrics."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.core.metrics import metrics_of
from support import echo, traces

pytestmark = pytest.mark.spark


def test_a_stage_from_outside_tells_its_numbers_as_its_own_model(
    spark: SparkSession, work: Path
) -> None:
    trace = traces.write_trace(work / "trace.parquet", traces.clean_rows(100))
    stream = echo.echo(lx.stream(traces.trace_source(spark, trace, 100)))
    report = traces.run(stream, work).reports()[0]
    assert report.stages["echo"] == echo.EchoReport(echoed=100, echo_us=1_500_000)
    echoed = next(one for one in metrics_of(report) if one.name == "laxity_echo_echoed")
    assert (echoed.value, echoed.labels["stage"]) == (100, "echo")
