"""What Spark promises of observations."""

import time

import pytest
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from laxity.spark.jvm.observed import is_observed

pytestmark = pytest.mark.spark


def test_an_observation_says_that_it_waits_and_soon_after_the_job_that_it_is_there(
    spark: SparkSession,
) -> None:
    numbers = Observation()
    assert not is_observed(numbers)
    rows = spark.range(3).observe(numbers, F.count(F.lit(1)).alias("n"))
    assert not is_observed(numbers)
    assert rows.collect()
    until = time.monotonic() + 10
    while not is_observed(numbers) and time.monotonic() < until:
        time.sleep(0.01)
    assert is_observed(numbers)
    assert numbers.get == {"n": 3}


def test_a_job_that_reads_other_rows_observes_nothing(spark: SparkSession) -> None:
    numbers, rows = Observation(), spark.range(3)
    rows.observe(numbers, F.count(F.lit(1)).alias("n"))
    assert rows.collect()
    assert not is_observed(numbers)
