"""The operators of a query as a graph, and how long the longest way through it takes.

The latency from end to end is that of the slowest path: the latencies of its operators and the
time between them (Slack-ScaleGate, eq. 2).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from laxity.errors import ConfigError


@dataclass(frozen=True)
class Operator:
    """One operator; `after` names those before it, with the time from them to it.

    `merges` says whether it has a slack to set. Threads and sliding window are features of its
    estimate (eq. 6).
    """

    after: tuple[tuple[str, int], ...] = ()
    merges: bool = True
    threads: int = 1
    window_us: int = 0


class Graph:
    """Operators by name, each named after those it comes after.

    >>> graph = Graph({"a": Operator(), "b": Operator(), "c": Operator((("a", 5), ("b", 0)))})
    >>> graph.longest({"a": 10, "b": 12, "c": 1})
    16
    """

    def __init__(self, operators: Mapping[str, Operator]) -> None:
        if not operators:
            raise ConfigError("a graph needs at least one operator, got none")
        seen: set[str] = set()
        for name, operator in operators.items():
            unknown = [before for before, _ in operator.after if before not in seen]
            if unknown:
                raise ConfigError(
                    f"operator {name} comes after {', '.join(unknown)}, which must be named first"
                )
            seen.add(name)
        self.operators = dict(operators)
        self.merges = [name for name, operator in operators.items() if operator.merges]
        if not self.merges:
            raise ConfigError("no operator of the graph merges: there is no slack to tune")

    def longest(self, latency: Mapping[str, float]) -> float:
        """The latency from end to end."""
        done: dict[str, float] = {}
        for name, operator in self.operators.items():
            starts = [done[before] + between for before, between in operator.after]
            done[name] = max(starts, default=0) + latency[name]
        return max(done.values())

    def most_merges(self) -> int:
        """How many merges there are at most on one path."""
        flat = {
            name: Operator(tuple((before, 0) for before, _ in operator.after))
            for name, operator in self.operators.items()
        }
        ones = {name: float(operator.merges) for name, operator in self.operators.items()}
        return int(Graph(flat).longest(ones))
