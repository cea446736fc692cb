"""What Spark makes of rows before it runs them: its plan, read and told in names."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from laxity.spark.jvm.plans import each

_CACHED = "InMemoryRelation"  # it does not tell what it was made of


def columns_read(rows: DataFrame) -> set[str] | None:
    """The names of all columns that anything reads of what the rows are made of.

    None if the plan does not tell, because it reads rows that somebody has cached.
    """
    plan = rows._jdf.queryExecution().optimizedPlan()
    nodes = list(_nodes(plan))
    leaves = [node for node in nodes if not node.children().size()]
    if any(leaf.nodeName() == _CACHED for leaf in leaves):
        return None
    given = {a.exprId().id(): a.name() for leaf in leaves for a in each(leaf.output())}
    read = [node.references().toSeq() for node in nodes]
    ids = [attribute.exprId().id() for seq in (plan.output(), *read) for attribute in each(seq)]
    return {given[id_] for id_ in ids if id_ in given}


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for more in (plan.children(), plan.subqueries()):
        for node in each(more):
            yield from _nodes(node)
