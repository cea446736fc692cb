"""What `.apply` may do with a stream's rows: nothing that needs those of other batches."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import laxity as lx
from laxity.spark.api.stream import Stream

pytestmark = pytest.mark.spark

Fn = Callable[[DataFrame], DataFrame]


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> Stream:
    rows = spark.readStream.format("rate").load()
    return lx.stream(lx.source("bus", rows, event_time="timestamp"))


def areas(rows: DataFrame) -> DataFrame:
    """A static table."""
    return rows.sparkSession.range(9).select(F.col("id").alias("value"), F.lit("x").alias("area"))


def sql(text: str) -> Fn:
    """A function that says in SQL what it does with `r`, and may use the static table `areas`."""

    def of(rows: DataFrame) -> DataFrame:
        return rows.sparkSession.sql(text, r=rows, areas=areas(rows))

    return of


def numbered(rows: DataFrame) -> DataFrame:
    """The rows of a value, numbered by their events."""
    of_value = Window.partitionBy("value").orderBy("_event")
    return rows.withColumn("n", F.row_number().over(of_value))


def same(batches: Any) -> Any:
    return batches


ROW_BY_ROW: dict[str, Fn] = {
    "nothing": lambda r: r,
    "numbers": lambda r: r.withColumns({"x": F.rand(), "n": F.monotonically_increasing_id()}),
    "explode": lambda r: r.select(F.explode(F.array("value", "_seq"))),
    "repartition": lambda r: r.repartition(3, "value").coalesce(2),
    "a sort of its own": lambda r: r.repartitionByRange(2, "value").sortWithinPartitions("_event"),
    "sample": lambda r: r.sample(0.5),
    "split": lambda r: r.randomSplit([1.0, 2.0])[0],
    "observe": lambda r: r.observe("seen", F.count(F.lit(1))),
    "hint": lambda r: r.hint("broadcast"),
    "unpivot": lambda r: r.unpivot("_event", ["value", "_seq"], "what", "number"),
    "python": lambda r: r.withColumn("u", F.udf(lambda value: value)("value")).mapInPandas(
        same, r.schema
    ),
    "arrow": lambda r: r.mapInArrow(same, r.schema),
    "union": lambda r: r.where("value < 3").union(r.where("value > 5")),
    "static join": lambda r: r.join(areas(r), "value", "left"),
    "static join from the right": lambda r: F.broadcast(areas(r)).join(r, "value"),
    "static semi join": lambda r: r.join(areas(r), "value", "left_anti"),
    "static aggregates": lambda r: r.join(areas(r).groupBy("value").count().limit(3), "value"),
    "static subquery": sql("SELECT * FROM {r} WHERE value > (SELECT max(value) FROM {areas})"),
    "static in": sql("SELECT * FROM {r} r WHERE value IN (SELECT value FROM {areas} a)"),
    "lateral": sql("SELECT * FROM {r}, LATERAL (SELECT max(x) FROM explode(array(value)) t(x))"),
    "with": sql("WITH c AS (SELECT value FROM {r}), d AS (SELECT * FROM c) SELECT * FROM d"),
    "recursion": sql(
        "WITH RECURSIVE c(n) AS (SELECT value FROM {r} r UNION ALL "
        "SELECT n + 1 FROM c WHERE n < 3) SELECT * FROM c"
    ),
    "array functions": lambda r: r.select(F.aggregate(F.array("value"), F.lit(0), lambda a, b: a)),
    "a checkpoint hides it": lambda r: r.groupBy("value").count().localCheckpoint(),
    "a job of its own": lambda r: r.withColumn("n", F.lit(r.count())),
}

COMBINING: dict[str, tuple[Fn, str]] = {
    "agg": (lambda r: r.agg(F.max("value")), "groupBy/agg"),
    "windowed": (lambda r: r.groupBy(F.window("_event", "1 second")).count(), "groupBy/agg"),
    "pivot": (lambda r: r.groupBy("value").pivot("_seq", [1]).count(), "groupBy/agg"),
    "distinct": (lambda r: r.select("value").distinct(), "distinct"),
    "dropDuplicates": (lambda r: r.dropDuplicates(["value"]), "distinct/dropDuplicates"),
    "window": (numbered, "a window function"),
    "limit": (lambda r: r.limit(3), "limit"),
    "offset": (lambda r: r.offset(3), "offset"),
    "sort": (lambda r: r.orderBy("_event"), "orderBy"),
    "pandas groups": (
        lambda r: r.groupBy("value").applyInPandas(same, "value long"),
        "groupBy.applyInPandas",
    ),
    "arrow groups": (
        lambda r: r.groupBy("value").applyInArrow(same, "value long"),
        "groupBy.applyInArrow",
    ),
    "cogroups": (
        lambda r: (
            r.groupBy("value")
            .cogroup(areas(r).groupBy("value"))
            .applyInPandas(lambda one, other: one, "value long")
        ),
        "cogroup",
    ),
    "state": (
        lambda r: r.groupBy("value").applyInPandasWithState(
            lambda key, rows, state: rows, "value long", "n long", "append", "NoTimeout"
        ),
        "groupBy.applyInPandasWithState",
    ),
    "subtract": (lambda r: r.select("value").subtract(areas(r).select("value")), "subtract"),
    "exceptAll": (lambda r: r.select("value").exceptAll(areas(r).select("value")), "exceptAll"),
    "intersect": (lambda r: areas(r).select("value").intersect(r.select("value")), "intersect"),
    "self-join": (lambda r: r.join(r.select("value"), "value"), "a join of the rows with them"),
    "outer join": (lambda r: areas(r).join(r, "value", "left"), "a left outer join that keeps"),
    "full join": (lambda r: r.join(areas(r), "value", "full"), "a full outer join that keeps"),
    "subquery": (sql("SELECT *, (SELECT max(value) FROM {r}) FROM {r}"), "groupBy/agg"),
    "exists": (lambda r: r.where(r.where("value = 3").exists()), "a subquery over the rows"),
    "in": (sql("SELECT * FROM {areas} a WHERE value IN (SELECT value FROM {r} r)"), "a subquery"),
    "with": (
        sql("WITH c AS (SELECT value FROM {r}) SELECT * FROM c a JOIN c b ON a.value = b.value"),
        "a join of the rows with themselves",
    ),
    "recursion": (
        sql(
            "WITH RECURSIVE c(n) AS (SELECT value FROM {r} r UNION ALL "
            "SELECT c.n + 1 FROM c JOIN {r} s ON c.n = s.value) SELECT * FROM c"
        ),
        "a join of the rows with themselves",
    ),
    "recursion from outside": (
        sql(
            "WITH RECURSIVE c(n) AS (SELECT 1L UNION ALL "
            "SELECT c.n + 1 FROM c JOIN {r} s ON c.n = s.value) SELECT * FROM c"
        ),
        "a recursion",
    ),
    "what nobody knows": (lambda r: r.zipWithIndex(), "AttachDistributedSequence"),
    "far below": (
        lambda r: r.union(r.join(areas(r), "value").select(*r.columns).limit(3)).where("value > 1"),
        "limit",
    ),
}


@pytest.mark.parametrize("what", ROW_BY_ROW)
def test_what_works_row_by_row_is_welcome(stream: Stream, what: str) -> None:
    assert stream.apply(ROW_BY_ROW[what]).stages


@pytest.mark.parametrize("what", COMBINING)
def test_what_combines_rows_is_refused_by_name(stream: Stream, what: str) -> None:
    fn, operator = COMBINING[what]
    with pytest.raises(lx.ConfigError) as refused:
        stream.apply(fn)
    assert f"({operator}" in str(refused.value)
    assert "batch by batch" in str(refused.value)
    assert "per_batch=True" in str(refused.value)


@pytest.mark.parametrize("what", COMBINING)
def test_who_means_each_batch_by_itself_says_so(stream: Stream, what: str) -> None:
    fn, _ = COMBINING[what]
    (stage,) = stream.apply(fn, per_batch=True).stages
    assert stage.terms.endswith(", each batch by itself")
