"""Rows at hand as one leaf of a plan, and what Spark promises of it."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from laxity.spark.jvm.rdd_leaf import RddLeaf, rows_of
from laxity.spark.rows.materialize import materialized
from laxity.spark.rows.partitioning import co_partitioned


@pytest.mark.spark
def test_a_logical_rdd_can_be_made_of_columns_an_rdd_and_a_partitioning_and_is_not_shuffled_again(
    spark: SparkSession,
) -> None:
    stored = materialized(co_partitioned(spark.range(20), ["id"]))
    leaf = RddLeaf.copied(stored.rows)
    leaf.compute()
    assert leaf.place.startswith("hashpartitioning(id, ")
    assert leaf.schema == leaf.rows.schema == stored.rows.schema
    counted = leaf.rows.groupBy("id").count()
    plan = counted._jdf.queryExecution().executedPlan().toString()
    assert "Scan ExistingRDD" in plan
    assert "Exchange" not in plan
    assert counted.where("count = 1").count() == 20
    stored.release()


@pytest.mark.spark
def test_rdds_that_lie_alike_are_one_rdd_that_lies_so_too(spark: SparkSession) -> None:
    stored = [materialized(co_partitioned(spark.range(n, n + 9), ["id"])) for n in (0, 5)]
    both = rows_of([RddLeaf.copied(one.rows) for one in stored])
    counted = both.groupBy("id").count()
    assert "Exchange" not in counted._jdf.queryExecution().executedPlan().toString()
    assert counted.where("count = 2").count() == 4
    for one in stored:
        one.release()


@pytest.mark.spark
def test_rows_made_of_those_of_the_batch_before_leave_no_trace_of_them(
    spark: SparkSession,
) -> None:
    """What Spark tells of them must not grow; they lie as before, so nothing is moved."""
    key = spark.range(5).withColumn("n", F.lit(1))
    rows, told = co_partitioned(spark.range(100), ["id"]), list[str]()
    for floor in range(4):
        more = rows.join(F.broadcast(key), "id").where(f"n > -{floor}").select("id")
        made = materialized(rows.union(more).where(f"id >= {floor}"))
        rows = RddLeaf.copied(made.rows).rows
        plan = rows._jdf.queryExecution().analyzed()
        told.append(f"{plan.stats().sizeInBytes()} {plan.constraints()}")
    assert len(set(told)) == 1
    counted = rows.groupBy("id").count()
    assert "Exchange" not in counted._jdf.queryExecution().executedPlan().toString()
    naive = [1] * 100
    for floor in range(4):
        naive = [n * (2 if id_ < 5 else 1) * (id_ >= floor) for id_, n in enumerate(naive)]
    assert {r["id"]: r["count"] for r in counted.collect()} == {
        i: n for i, n in enumerate(naive) if n
    }


@pytest.mark.spark
def test_rows_made_anew_are_the_same_in_the_same_places(spark: SparkSession) -> None:
    nine = materialized(co_partitioned(spark.range(9), ["id"]))
    long = nine.rows.selectExpr("id", "id + 1 AS n").where("n > 3").selectExpr("id", "n * 2 AS n")
    short = RddLeaf.made(long.where("n < 16")).rows
    assert sorted(short.collect()) == [(3, 8), (4, 10), (5, 12), (6, 14)]
    assert str(short._jdf.queryExecution().analyzed()).count("Project") == 0
    assert "Exchange" not in short.groupBy("id").count()._jdf.queryExecution().toString()
    nine.release()


@pytest.mark.spark
def test_leaves_are_one_though_only_some_have_nulls(spark: SparkSession) -> None:
    sure = spark.range(3).selectExpr("id AS key", "array(id) AS some", "struct(id) AS one")
    sure = sure.where("key IS NOT NULL")
    maybe = "IF(id > 0, id, NULL)"
    unsure = spark.range(3).selectExpr(
        f"{maybe} AS key", f"array({maybe}) AS some", f"named_struct('id', {maybe}) AS one"
    )
    copies = [materialized(co_partitioned(rows, ["key"])) for rows in (sure, unsure)]
    leaves = [RddLeaf.copied(one.rows) for one in copies]
    assert not leaves[0].schema["key"].nullable
    for both in (leaves, leaves[::-1]):
        rows = rows_of(both)
        assert str(rows._jdf.queryExecution().analyzed()).count("LogicalRDD") == 1
        assert rows.where("key IS NULL AND some[0] IS NULL AND one.id IS NULL").count() == 1
        assert sorted(row[0] for row in rows.where("some[0] = one.id").collect()) == [0, 1, 1, 2, 2]
        grouped = rows.groupBy("key").count()
        assert "Exchange" not in grouped._jdf.queryExecution().toString()
        assert grouped.count() == 4
    for one in copies:
        one.release()


@pytest.mark.spark
def test_leaves_that_lie_otherwise_keep_all_rows(spark: SparkSession) -> None:
    rows = spark.range(5).selectExpr("id AS key", "id + 1 AS other")
    copies = [materialized(co_partitioned(rows, [name])) for name in ("key", "other")]
    both = rows_of([RddLeaf.copied(one.rows) for one in copies])
    assert both.groupBy("key").count().where("count = 2").count() == 5
    for one in copies:
        one.release()
