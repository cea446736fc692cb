"""Whether a function of a batch's rows is one of the stream's: it works on each row by itself.

A micro-batch is an accident. What a function makes of each row alone is the same however the stream
is cut; what it makes of several rows together (a count, a sort, the newest of each) is partial, for
others of them may come in another batch. So the plan of what the function gives for no rows at all
is read: every operator above the stream's rows must be one that is known to work row by row. Static
tables are the same in every batch, so what is done with them alone does not matter.

What a function finds out by jobs of its own, or hides behind a checkpoint, is in no plan.
"""

from laxity.errors import ConfigError
from laxity.spark.jvm.plans import PlanNode

ROW_BY_ROW = {
    "AppendColumns",
    "CTERelationDef",
    "CollectMetrics",
    "DeserializeToObject",
    "EventTimeWatermark",
    "Expand",
    "Filter",
    "Generate",
    "LateralJoin",  # what it asks for each row is a subquery
    "MapElements",
    "MapInArrow",
    "MapInPandas",
    "MapPartitions",
    "PipeOperator",
    "Project",
    "PythonMapInArrow",
    "RebalancePartitions",
    "Repartition",
    "RepartitionByExpression",
    "ResolvedHint",
    "SQLFunctionNode",
    "Sample",
    "ScriptTransformation",
    "SerializeFromObject",
    "SubqueryAlias",
    "TypedFilter",
    "Union",
    "UnionLoop",
    "View",
    "WithCTE",
}
IN_WORDS = {
    "Aggregate": "groupBy/agg",
    "Deduplicate": "distinct/dropDuplicates",
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark",
    "Distinct": "distinct/dropDuplicates",
    "Except": "subtract",
    "Except All": "exceptAll",
    "FlatMapCoGroupsInArrow": "cogroup.applyInArrow",
    "FlatMapCoGroupsInPandas": "cogroup.applyInPandas",
    "FlatMapGroupsInArrow": "groupBy.applyInArrow",
    "FlatMapGroupsInPandas": "groupBy.applyInPandas",
    "FlatMapGroupsInPandasWithState": "groupBy.applyInPandasWithState",
    "GlobalLimit": "limit",
    "Intersect": "intersect",
    "Intersect All": "intersectAll",
    "LocalLimit": "limit",
    "Offset": "offset",
    "Sort": "orderBy; sortWithinPartitions is none",
    "TransformWithStateInPySpark": "groupBy.transformWithState",
    "Window": "a window function",
}
# joins that give nothing but what a row of one side finds on the other
_KEEPS = {
    0: ("inner", "cross", "left outer", "left semi", "left anti"),
    1: ("inner", "cross", "right outer"),
}


def check_row_by_row(name: str, made: PlanNode, rows: PlanNode) -> None:
    """Refuse a function, called `name`, that combines the rows it `made` its result of."""
    streams = {leaf.means: True for leaf in rows.leaves}
    assert all(streams), "the rows of a trial must be known again"
    try:
        _of_stream(made, streams)
    except _Combines as found:
        raise ConfigError(
            f"apply({name}) combines rows ({found}), but .apply works batch by batch: rows that "
            "belong together may come in different batches, and results would be partial. Let a "
            "stage combine them over batches (lx.merge, .join, .revise), or say that you mean each "
            f"batch by itself: .apply({name}, per_batch=True)"
        ) from None


class _Combines(Exception):  # noqa: N818
    """An operator, in words, that needs several rows of the stream."""


def _of_stream(node: PlanNode, streams: dict[str, bool]) -> bool:
    """Whether there are rows of the stream in what an operator gives.

    `streams`: of rows with a name, whether they are; it learns of those that the plan names.
    """
    sides = []
    for child in node.children:
        sides.append(_of_stream(child, streams))
        if node.means:
            streams.setdefault(node.means, sides[0])  # of a loop: what it begins with
    if any(_of_stream(asked, streams) for asked in node.subqueries):
        raise _Combines("a subquery over the rows")
    if any(sides) and (what := _combined(node, sides)):
        raise _Combines(what)
    return any(sides) or streams.get(node.means, False)


def _combined(node: PlanNode, sides: list[bool]) -> str | None:
    """What an operator over rows of the stream is called if it needs several at once."""
    if node.name in ("Join", "AsOfJoin"):
        return _joined(node, sides)
    if node.name == "UnionLoop" and not sides[0]:
        return "a recursion that comes upon the rows"
    if node.name in ROW_BY_ROW or (node.name == "Sort" and node.kind == "local"):
        return None
    return IN_WORDS.get(node.name, f"{node.name}, not known to work row by row")


def _joined(node: PlanNode, sides: list[bool]) -> str | None:
    if all(sides):
        return "a join of the rows with themselves"
    if node.kind in _KEEPS[sides.index(True)]:
        return None
    return f"a {node.kind} join that keeps rows of the other table, found or not"
