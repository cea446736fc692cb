"""What Spark has understood of a query: its plan as a plain tree, before anything is made better.

The tree tells operators by the names Spark gives them. Nothing runs, and no row is read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

# how an operator tells which rows it gives or means: those of an RDD, or of a part of the query
# that has a name
_MEANS: dict[str, Callable[[Any], str]] = {
    "LogicalRDD": lambda node: f"rdd {node.rdd().id()}",
    "CTERelationDef": lambda node: f"with {node.id()}",
    "CTERelationRef": lambda node: f"with {node.cteId()}",
    "UnionLoop": lambda node: f"loop {node.id()}",
    "UnionLoopRef": lambda node: f"loop {node.loopId()}",
}
_KIND: dict[str, Callable[[Any], str]] = {
    "Join": lambda node: node.joinType().sql().lower(),
    "AsOfJoin": lambda node: node.joinType().sql().lower(),
    "Sort": lambda node: "global" if getattr(node, "global")() else "local",
}


@dataclass(frozen=True)
class PlanNode:
    """An operator, what it reads, and the queries its expressions ask.

    `means`: the rows it stands for, equal for operators that stand for the same. `kind`: which kind
    of join, or of sort, it is.
    """

    name: str
    children: tuple["PlanNode", ...] = ()
    subqueries: tuple["PlanNode", ...] = ()
    means: str = ""
    kind: str = ""

    @property
    def leaves(self) -> Iterator["PlanNode"]:
        """Where its rows come from, those of subqueries left out."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves


def analyzed_plan(rows: DataFrame) -> PlanNode:
    """The plan of a query as it was written, every name in it found."""
    return _node(rows._jdf.queryExecution().analyzed())


def _node(plan: Any) -> PlanNode:
    name = plan.nodeName()
    return PlanNode(
        name,
        tuple(map(_node, each(plan.children()))),
        tuple(map(_node, each(plan.subqueries()))),
        means=_MEANS[name](plan) if name in _MEANS else "",
        kind=_KIND[name](plan) if name in _KIND else "",
    )


def each(seq: Any) -> Iterator[Any]:
    """The elements of a sequence of Java's."""
    return (seq.apply(n) for n in range(seq.size()))
