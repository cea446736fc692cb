"""What Spark promises of analysed plans, and what becomes of it here."""

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from laxity.spark.jvm.plans import PlanNode, analyzed_plan

pytestmark = pytest.mark.spark


@pytest.fixture
def empty(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], "k long, v double")


def walk(node: PlanNode) -> list[PlanNode]:
    return [node, *(one for child in (*node.children, *node.subqueries) for one in walk(child))]


def test_empty_rows_are_a_leaf_that_is_known_again_wherever_it_is_read(empty: DataFrame) -> None:
    (leaf,) = analyzed_plan(empty).leaves
    assert leaf.name == "LogicalRDD"
    twice = empty.alias("a").join(empty.alias("b"), F.col("a.k") == F.col("b.k"))
    assert [one.means for one in analyzed_plan(twice).leaves] == [leaf.means] * 2
    other = empty.sparkSession.createDataFrame([], empty.schema)
    assert next(analyzed_plan(other).leaves).means != leaf.means


def test_joins_and_sorts_say_of_which_kind_they_are(empty: DataFrame) -> None:
    joins = ["inner", "left outer", "right outer", "full outer", "left semi", "left anti"]
    for kind in joins:
        joined = empty.join(empty.selectExpr("k"), "k", kind.replace(" ", ""))
        assert [one.kind for one in walk(analyzed_plan(joined)) if one.name == "Join"] == [kind]
    assert analyzed_plan(empty.orderBy("k")).kind == "global"
    assert analyzed_plan(empty.sortWithinPartitions("k")).kind == "local"


def test_queries_in_expressions_are_told_apart_from_what_is_read(empty: DataFrame) -> None:
    plan = analyzed_plan(empty.where(empty.where("k = 3").exists()))
    assert [one.name for one in plan.subqueries] == ["Filter"]
    assert [one.name for one in plan.children] == ["LogicalRDD"]


def test_named_parts_of_a_query_are_defined_before_they_are_meant(empty: DataFrame) -> None:
    text = "WITH c AS (SELECT k FROM {e}) SELECT * FROM c"
    plan = analyzed_plan(empty.sparkSession.sql(text, e=empty))
    named = [one for one in walk(plan) if one.means.startswith("with")]
    assert [one.name for one in named] == ["CTERelationDef", "CTERelationRef"]
    assert len({one.means for one in named}) == 1
