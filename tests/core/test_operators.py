import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.core.operators import Graph, Operator
from laxity.errors import ConfigError

Edges = list[list[tuple[int, int]]]


@st.composite
def edges(draw: st.DrawFn) -> Edges:
    """For each of some operators, those before it and the time from them."""
    made: Edges = []
    for n in range(draw(st.integers(1, 5))):
        before = draw(st.lists(st.integers(0, n - 1), unique=True)) if n else []
        made.append([(one, draw(st.integers(0, 9))) for one in before])
    return made


def longest(edges: Edges, latency: list[int]) -> int:
    """Every path tried."""
    best = 0
    for n in range(1, len(edges) + 1):
        for path in itertools.combinations(range(len(edges)), n):
            steps = list(itertools.pairwise(path))
            if all(a in dict(edges[b]) for a, b in steps):
                between = sum(dict(edges[b])[a] for a, b in steps)
                best = max(best, between + sum(latency[one] for one in path))
    return best


@given(edges(), st.data())
def test_same_as_oracle_the_longest_path(edges: Edges, data: st.DataObject) -> None:
    latency = [data.draw(st.integers(0, 20)) for _ in edges]
    graph = Graph(
        {
            str(n): Operator(tuple((str(one), us) for one, us in before))
            for n, before in enumerate(edges)
        }
    )
    assert graph.longest({str(n): us for n, us in enumerate(latency)}) == longest(edges, latency)


def test_the_most_merges_on_one_path() -> None:
    graph = Graph(
        {
            "a": Operator(),
            "b": Operator((("a", 90),), merges=False),
            "c": Operator((("b", 0),)),
            "d": Operator((("a", 0),)),
        }
    )
    assert graph.merges == ["a", "c", "d"]
    assert graph.most_merges() == 2


def test_graphs_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least one operator"):
        Graph({})
    with pytest.raises(ConfigError, match="operator a comes after b, which must be named first"):
        Graph({"a": Operator((("b", 0),)), "b": Operator()})
    with pytest.raises(ConfigError, match="there is no slack to tune"):
        Graph({"a": Operator(merges=False)})
