"""What starting a query sets in a session."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

from laxity.spark.api.start import MANAGER, PLAIN, prepare


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[RuntimeConfig]:
    before = spark.conf.get(MANAGER, None)
    spark.conf.unset(MANAGER)
    yield spark.conf
    spark.conf.unset(MANAGER)
    if before is not None:
        spark.conf.set(MANAGER, before)


@pytest.mark.spark
def test_only_local_logs_are_written_as_plain_files(conf: RuntimeConfig) -> None:
    prepare(conf, "file:///work/spark")
    assert conf.get(MANAGER, None) == PLAIN
    prepare(conf, "hdfs://there/spark")
    assert conf.get(MANAGER, None) is None


@pytest.mark.spark
def test_how_the_user_wants_logs_written_is_left_alone(conf: RuntimeConfig) -> None:
    conf.set(MANAGER, "of.their.own")
    for checkpoint in ("file:///work/spark", "hdfs://there/spark"):
        prepare(conf, checkpoint)
        assert conf.get(MANAGER, None) == "of.their.own"
