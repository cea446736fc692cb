"""What merge tests are made of: sources, how their rows interleave, where batches are cut.

Times are small numbers, so that rows tie, meet boundaries and overtake each other often.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from oracles import Batch, Row, Setting

Sources = list[list[int]]  # the event times of each source, as it sends them

MAX_US = 30


def _sources(one: st.SearchStrategy[list[int]]) -> st.SearchStrategy[Sources]:
    return st.lists(one, min_size=2, max_size=3)


IN_ORDER = _sources(st.sets(st.integers(0, MAX_US), min_size=3, max_size=8).map(sorted))
WITH_TIES = _sources(st.lists(st.integers(0, 9), min_size=3, max_size=8).map(sorted))
BROKEN_ORDER = _sources(st.lists(st.integers(0, 20), min_size=3, max_size=8))
HARDLY_ANY = st.lists(st.lists(st.integers(0, 9), max_size=2), min_size=1, max_size=3)
ANY_SOURCES = st.one_of(IN_ORDER, WITH_TIES, BROKEN_ORDER, HARDLY_ANY)

SLACKS = st.one_of(st.integers(0, 8), st.integers(0, MAX_US + 5), st.none())


@dataclass(frozen=True)
class Insert:
    """A writer inserts its next row."""

    row: Row


@dataclass(frozen=True)
class ReadBy:
    """A reader asks for a row."""

    reader: int


@dataclass(frozen=True)
class SetSlack:
    """The slack is changed."""

    slack_us: int | None


Program = list[Insert | ReadBy | SetSlack]


def in_turns(
    sources: Sources, turns: Sequence[int], numbers: Sequence[int] = range(1_000)
) -> list[Row]:
    """The rows of all sources as they come if the sources speak in these turns.

    A source's rows have these sequence numbers.
    """
    spoken = [0] * len(sources)
    rows = []
    for nr, source in enumerate(turns):
        place = spoken[source]
        rows.append((sources[source][place], source, numbers[place], nr))
        spoken[source] += 1
    return rows


def all_turns(sources: Sources) -> list[int]:
    """One turn for every row, source by source."""
    return [rank for rank, source in enumerate(sources) for _ in source]


@st.composite
def arrivals(draw: st.DrawFn, sources: Sources) -> list[Row]:
    """The rows of the sources in any interleaving, numbered upwards, downwards or all alike."""
    numbers = draw(st.sampled_from([range(8), range(8, 0, -1), [0, 0, 1, 1, 2, 2, 3, 3], [0] * 8]))
    return in_turns(sources, draw(st.permutations(all_turns(sources))), numbers)


@st.composite
def programs(draw: st.DrawFn, sources: Sources, n_readers: int = 2) -> Program:
    """Inserts in any interleaving, with readers reading and the slack changing in between."""
    readers, times = st.integers(0, n_readers - 1), st.sampled_from([1, 5])
    reads: st.SearchStrategy[Program] = st.builds(lambda by, n: [ReadBy(by)] * n, readers, times)
    changes: st.SearchStrategy[Program] = SLACKS.map(lambda us: [SetSlack(us)])
    nothing: st.SearchStrategy[Program] = st.just([])
    acts = st.one_of(reads, reads, changes, nothing)
    program: Program = []
    for row in draw(arrivals(sources)):
        program += [Insert(row), *draw(acts), *draw(acts)]
    return program


def steady_programs(sources: Sources, n_readers: int = 2) -> st.SearchStrategy[Program]:
    """The same with the slack left alone."""
    return programs(sources, n_readers).map(
        lambda program: [act for act in program if not isinstance(act, SetSlack)]
    )


@st.composite
def cut(draw: st.DrawFn, rows: list[Row]) -> list[list[Row]]:
    """The rows cut into batches, some of them empty."""
    places = st.integers(0, len(rows))
    at = [0, *sorted(draw(st.lists(places, max_size=10))), len(rows)]
    return [rows[start:end] for start, end in pairwise(at)]


@st.composite
def batches(draw: st.DrawFn, sources: Sources) -> list[Batch]:
    """Batches of the sources at growing times, the slack changing between them."""
    parts = draw(cut(draw(arrivals(sources))))
    now_us, made = 0, []
    for rows in parts:
        now_us += draw(st.integers(0, 6))
        made.append(Batch(rows, draw(SLACKS), now_us))
    return made


@st.composite
def settings_of(draw: st.DrawFn, n_sources: int) -> Setting:
    """Any setting for so many sources."""
    some = st.integers(0, n_sources - 1)
    return Setting(
        n_sources,
        draw(st.frozensets(some)),
        draw(st.one_of(st.none(), st.integers(0, 12))),
        draw(st.dictionaries(some, st.integers(0, 12))),
    )
