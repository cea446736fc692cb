"""What revise tests are made of: apps, rows, how late they come, and the naive answer.

The oracle knows neither streams nor state: every window of every aggregate is worked out from the
list of all rows. Times are small numbers, so that rows tie, meet edges and leave holes often. The
value of a result tells all rows it was made of, at times relative to its window.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from laxity.sim.retained import Rows as Columns
from laxity.sim.retained import Terms, rows_of
from laxity.sim.windows import Aggregate, App, Row

MAX_US = 40


def oracle(app: App, rows: Sequence[Row]) -> dict[tuple[Any, int, Hashable], Any]:
    """The results of an app on all rows: by key, time and kind."""
    for step in app.steps:
        if isinstance(step, Aggregate):
            rows = _windows(step, rows)
        else:
            rows = [Row(row.ts_us, row.key, value) for row in rows for value in step(row)]
    return {(row.key, row.ts_us, app.kind(row.value)): row.value for row in rows}


def _windows(aggregate: Aggregate, rows: Sequence[Row]) -> list[Row]:
    """One result for every key and window that has rows and makes something of them."""
    results = []
    for key in {row.key for row in rows}:
        mine = sorted((row for row in rows if row.key == key), key=lambda row: row.ts_us)
        first, last = mine[0].ts_us - aggregate.size_us, mine[-1].ts_us
        for left_us in range(first - first % aggregate.advance_us, last + 1, aggregate.advance_us):
            inside = [row for row in mine if left_us <= row.ts_us < left_us + aggregate.size_us]
            value = aggregate.fn(left_us, inside) if inside else None
            if value is not None:
                results.append(Row(left_us, key, value))
    return results


def coalesced(left_us: int, rows: Sequence[Row]) -> Any:
    """All that is in the window."""
    return tuple((row.ts_us - left_us, row.value) for row in rows)


def two_or_more(left_us: int, rows: Sequence[Row]) -> Any:
    """The same, but nothing for a single row."""
    return coalesced(left_us, rows) if len(rows) > 1 else None


def odd_first(row: Row) -> list[Any]:
    """Leave out results whose window begins without a row."""
    return [row.value] if row.value[0][0] == 0 else []


def doubled(row: Row) -> list[Any]:
    """Two results of two kinds."""
    return [("all", row.value), ("n", len(row.value))]


def by_phase(periodicity_us: int) -> Callable[[int, Sequence[Row]], Any]:
    """All that is in the window, and the phase of the period it begins in."""
    return lambda left_us, rows: (left_us % periodicity_us, coalesced(left_us, rows))


AGGREGATES = st.integers(1, 6).flatmap(
    lambda size: st.builds(
        Aggregate,
        st.just(size),
        st.integers(1, size),
        st.sampled_from([coalesced, coalesced, two_or_more]),
    )
)


@st.composite
def apps(draw: st.DrawFn) -> App:
    """One to three aggregates, with or without stateless steps between and after them."""
    steps: list[Any] = []
    for aggregate in draw(st.lists(AGGREGATES, min_size=1, max_size=3)):
        steps += [aggregate, *draw(st.sampled_from([[], [], [odd_first]]))]
    if draw(st.booleans()):
        return App((*steps, doubled), kind=lambda value: value[0])
    return App(tuple(steps))


@dataclass(frozen=True)
class Arriving:
    """Rows in order of arrival within a bound on lateness, numbered by time within each key."""

    rows: list[Row]
    numbers: list[int]
    terms: Terms

    def columns(self, start: int, end: int) -> Columns:
        """Some of the rows as columns."""
        some = self.rows[start:end]
        key, ts_us, value = ([row[i] for row in some] for i in (1, 0, 2))
        return rows_of(key, ts_us, value, self.numbers[start:end])


Place = tuple[int, int, int]  # key, the how-manyth time, and how much later the row comes


def sparse(n_keys: int, n_times: int, lateness_us: int) -> st.SearchStrategy[list[Place]]:
    """A few rows anywhere, often on time or as late as can be."""
    delays = st.sampled_from([0, lateness_us]) | st.integers(0, lateness_us)
    one = st.tuples(st.integers(0, n_keys - 1), st.integers(0, n_times - 1), delays)
    return st.lists(one, min_size=1, max_size=40, unique_by=lambda place: place[:2])


def dense(n_keys: int, n_times: int, lateness_us: int) -> st.SearchStrategy[list[Place]]:
    """Most rows there could be, a third of them late: results change again and again."""

    def drawn(seed: int) -> list[Place]:
        rng = np.random.default_rng(seed)
        late = rng.integers(0, lateness_us + 1, (n_keys, n_times)) * (rng.random(n_times) < 1 / 3)
        some = np.argwhere(rng.random(late.shape) < 0.8).tolist() or [[0, 0]]
        return [(key, time, int(late[key, time])) for key, time in some]

    return st.integers(0, 2**32 - 1).map(drawn)


@st.composite
def arrivals(draw: st.DrawFn) -> Arriving:
    """Rows of one to three keys; some never come, the others up to a bound late."""
    period_us = draw(st.sampled_from([1, 1, 2, 3]))
    lateness_us = draw(st.sampled_from([0, 2, 7, 15, 15, MAX_US]))
    period = draw(st.sampled_from([period_us, period_us, None]))
    terms = Terms(lateness_us, period, period is None and draw(st.booleans()))
    size = draw(st.integers(1, 3)), MAX_US // period_us, lateness_us
    places = draw(sparse(*size) | dense(*size))
    rows = []
    for nr, (key, time, delay_us) in enumerate(places):
        number = sum(k == key and t < time for k, t, _ in places)
        rows.append((time * period_us + delay_us, number, Row(time * period_us, key, nr)))
    rows = rows[draw(st.integers(0, len(rows) // 4)) :]
    come = sorted(rows, key=lambda row: (row[0], -row[2].ts_us))  # as late as can be
    return Arriving([row for *_, row in come], [number for _, number, _ in come], terms)


def closing(app: App, arriving: Arriving) -> Arriving:
    """The same, and then a row of a key of its own so much later that nothing waits any more."""
    newest_us = max(row.ts_us for row in arriving.rows)
    end = Row(newest_us + arriving.terms.lateness_us + 2 * app.shape.span_us, 9, 0)
    return Arriving([*arriving.rows, end], [*arriving.numbers, 0], arriving.terms)


@st.composite
def cuts(draw: st.DrawFn, n_rows: int) -> list[tuple[int, int]]:
    """Where batches begin and end, some of them empty; or every row is a batch."""
    some = st.lists(st.integers(0, n_rows), max_size=12)
    places = draw(some | st.just(list(range(n_rows))))
    return list(pairwise([0, *sorted(places), n_rows]))
