"""Build-time checks of sources and streams: nothing runs."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx

pytestmark = pytest.mark.spark


@pytest.fixture
def rate(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load()


def test_a_source_knows_its_terms(rate: DataFrame) -> None:
    terms = lx.source("bus", rate, event_time="timestamp", idle_after="30s").terms
    assert str(terms) == (
        "event timestamp, arrival the batch's start, sequence a hash of the row, "
        "idle after 30s, future at most 1min, times may be repeated"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"event_time": "ts"}, "event_time column ts is missing; there are timestamp, value"),
        ({"event_time": "value"}, r"event_time column value is bigint, not a time.*timestamp_mill"),
        ({"event_time": "timestamp", "arrival": "x"}, "arrival column x is missing"),
        ({"event_time": "timestamp", "sequence": "x"}, "sequence column x is missing"),
        ({"event_time": "timestamp", "idle_after": "-3s"}, "idle_after must be ≥ 0, got -3s"),
        ({"event_time": "timestamp", "max_future": "soon"}, "max_future must be a number and a un"),
        ({"event_time": "ts", "schema": "ts long"}, "value is bigint: a schema parses JSON text"),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    rate: DataFrame, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(lx.ConfigError, match=message):
        lx.source("bus", rate, **given)


@pytest.mark.parametrize("name", ["", "two words", "_bus", "a.b", "1st"])
def test_a_name_must_be_a_plain_word(rate: DataFrame, name: str) -> None:
    with pytest.raises(lx.ConfigError, match="must be a plain word"):
        lx.source(name, rate, event_time="timestamp")


def test_a_column_of_laxitys_own_name_is_refused(rate: DataFrame) -> None:
    with pytest.raises(lx.ConfigError, match="column _seq is Laxity's own"):
        lx.source("bus", rate.withColumn("_seq", F.lit(1)), event_time="timestamp")


def test_a_batch_dataframe_is_refused(spark: SparkSession) -> None:
    with pytest.raises(lx.ConfigError, match="not streaming"):
        lx.source("bus", spark.range(3).withColumn("ts", F.current_timestamp()), event_time="ts")


def test_rows_with_a_map_need_a_sequence(rate: DataFrame) -> None:
    mapped = rate.withColumn("m", F.create_map(F.lit("k"), "value"))
    with pytest.raises(lx.ConfigError, match="name a sequence column"):
        lx.source("bus", mapped, event_time="timestamp")
    assert lx.source("bus", mapped, event_time="timestamp", sequence="value").terms.sequence


def test_two_sources_of_one_name_are_refused(rate: DataFrame) -> None:
    one = lx.source("bus", rate, event_time="timestamp")
    with pytest.raises(lx.ConfigError, match=r"got \['bus', 'bus'\]"):
        lx.stream(one, one)
    with pytest.raises(lx.ConfigError, match=r"got \[\]"):
        lx.stream()


def test_one_source_keeps_its_columns_several_become_structs(rate: DataFrame) -> None:
    bus = lx.source("bus", rate, event_time="timestamp")
    scats = lx.source("scats", rate.withColumn("flow", F.lit(1)), event_time="timestamp")
    own = ["_source", "_event", "_arrival", "_seq"]
    assert lx.stream(bus).schema.names == [*own, "timestamp", "value"]
    assert lx.stream(bus, scats).schema.names == [*own, "bus", "scats"]


def test_kafka_rows_bring_their_arrival_and_sequence(rate: DataFrame) -> None:
    kafka = rate.select(
        *(F.lit(None).cast("binary").alias(name) for name in ("key", "value")),
        F.lit("t").alias("topic"),
        F.lit(0).alias("partition"),
        F.lit(0).cast("bigint").alias("offset"),
        "timestamp",
        F.lit(0).alias("timestampType"),
    )
    terms = lx.source("bus", kafka, event_time="ts", schema="ts timestamp, area int").terms
    assert (terms.arrival, terms.sequence) == ("timestamp", "partition + offset")


def test_apply_is_tried_at_once(rate: DataFrame) -> None:
    stream = lx.stream(lx.source("bus", rate, event_time="timestamp"))
    with pytest.raises(lx.ConfigError, match=r"apply\(<lambda>\) fails on the stream's columns"):
        stream.apply(lambda rows: rows.select("nothing"))
    with pytest.raises(lx.ConfigError, match="must give a DataFrame, got int"):
        stream.apply(lambda rows: 3)  # type: ignore[arg-type,return-value]
    assert stream.apply(lambda rows: rows.select("value")).schema.names == ["value"]
    assert stream.stages == ()


def test_results_may_not_have_a_column_batch_id(rate: DataFrame, work: Path) -> None:
    named = rate.withColumnRenamed("value", "batch_id")
    stream = lx.stream(lx.source("bus", named, event_time="timestamp"))
    with pytest.raises(lx.ConfigError, match="rename your column"):
        stream.start("t", sink=lx.memory(), checkpoint=str(work / "checkpoint"))


def test_a_bad_trigger_or_deadline_starts_nothing(rate: DataFrame, work: Path) -> None:
    source = lx.source("bus", rate, event_time="timestamp")
    with pytest.raises(lx.ConfigError, match="deadline must be ≥ 0"):
        lx.stream(source, deadline="-6s")
    with pytest.raises(lx.ConfigError, match="trigger must be a number and a unit"):
        lx.stream(source).start(
            "t", sink=lx.memory(), checkpoint=str(work / "checkpoint"), trigger="often"
        )
    assert not (work / "checkpoint").exists()
