"""What Spark tells of a plan before it runs."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from laxity.spark.jvm.columns_read import columns_read

pytestmark = pytest.mark.spark
SCHEMA = "a bigint, b bigint, c bigint, d bigint"


def test_an_optimized_plan_names_all_columns_that_it_reads(spark: SparkSession) -> None:
    """Those of results, of conditions and of keys; not one that is only passed over."""
    rows = spark.createDataFrame([], SCHEMA)
    assert columns_read(rows.select("a", "b").where("c > 1").select("a")) == {"a", "c"}
    assert columns_read(rows.groupBy("a").agg(F.sum(F.col("d") * 2).alias("n"))) == {"a", "d"}
    assert columns_read(rows) == {"a", "b", "c", "d"}


def test_an_optimized_plan_names_the_columns_of_its_subqueries(spark: SparkSession) -> None:
    spark.createDataFrame([], SCHEMA).createOrReplaceTempView("plan_rows")
    query = "SELECT a FROM plan_rows WHERE b = (SELECT max(c) FROM plan_rows)"
    assert columns_read(spark.sql(query)) == {"a", "b", "c"}


def test_a_plan_of_cached_rows_does_not_tell(spark: SparkSession) -> None:
    cached = spark.createDataFrame([], SCHEMA).select("a").cache()
    assert columns_read(cached.select((F.col("a") + 1).alias("n"))) is None
    cached.unpersist()
