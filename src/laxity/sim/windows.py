"""The seed's windows: aggregates in series that add rows, fire and remove (TinTiN, §2.1, S1–S3).

A window instance `[left, left + size)` fires when a row at or past its right edge comes, and only
for keys that have rows in it; its result carries the left edge. Then rows before `left + advance`
are removed and the window moves on, for all keys together. Edges are multiples of the advance.

The seed lets a later aggregate hear of time only through results. Here the left edge it may still
expect is passed down the chain even when there is nothing to say: else a first answer could come
after the exact one, and results up to `newest − span` would not always be out.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from laxity.core.revise import Shape


class Row(NamedTuple):
    """A row, or a result."""

    ts_us: int
    key: Any
    value: Any


@dataclass(frozen=True)
class Aggregate:
    """A window and what is made of it: a function of the left edge and its rows, None for nothing.

    The rows are in order of time.
    """

    size_us: int
    advance_us: int
    fn: Callable[[int, Sequence[Row]], Any]


Step = Callable[[Row], Iterable[Any]]  # stateless: the values that follow from one row, or none


@dataclass(frozen=True)
class App:
    """Aggregates in series with stateless steps between; `kind` tells results of one time apart."""

    steps: tuple[Aggregate | Step, ...]
    periodicity_us: int = 1
    kind: Callable[[Any], Hashable] = lambda value: None

    @property
    def shape(self) -> Shape:
        """What must be known to revise its results."""
        aggregates = [step for step in self.steps if isinstance(step, Aggregate)]
        return Shape.of([(a.size_us, a.advance_us) for a in aggregates], self.periodicity_us)

    def on(self, rows: Iterable[Row]) -> list[Row]:
        """The results of rows in order, with every window fired in the end."""
        running = Running(self)
        results = [result for row in rows for result in running.take(row)]
        return results + running.fire_all()


class Running:
    """An app that runs: fed with rows in order of time, it gives results in order of time."""

    def __init__(self, app: App) -> None:
        self._steps = [Windows(s) if isinstance(s, Aggregate) else s for s in app.steps]

    def take(self, row: Row) -> list[Row]:
        """Feed one row; the results that follow."""
        return self._through([row], row.ts_us)

    def fire_all(self) -> list[Row]:
        """Let all time pass."""
        return self._through([], None)

    def _through(self, rows: list[Row], clock_us: int | None) -> list[Row]:
        for step in self._steps:
            if isinstance(step, Windows):
                rows, clock_us = step.take(rows, clock_us)
            else:
                rows = [Row(row.ts_us, row.key, value) for row in rows for value in step(row)]
        return rows


class Windows:
    """The windows of one aggregate, one for every key, all covering the same time."""

    def __init__(self, aggregate: Aggregate) -> None:
        self._of = aggregate
        self._rows: dict[Hashable, list[Row]] = {}
        self._left_us = 0  # set when the first row comes

    def take(self, rows: Iterable[Row], clock_us: int | None) -> tuple[list[Row], int | None]:
        """Feed rows in order, then say that none before `clock_us` will come (None: none at all).

        The results, and the same said of results.
        """
        fired = []
        for row in rows:
            fired += self._move_to(row.ts_us)
            self._add(row)
        fired += self._move_to(clock_us)
        return fired, None if clock_us is None else self._left_us

    def _add(self, row: Row) -> None:
        self._rows.setdefault(row.key, []).append(row)

    def _move_to(self, clock_us: int | None) -> list[Row]:
        """Fire and remove until the window covers that time."""
        fired: list[Row] = []
        while self._rows and self._ends_by(clock_us):
            fired += self._fire(self._left_us)
            self._left_us += self._of.advance_us
            self._remove(self._left_us)
        if not self._rows and clock_us is not None:
            self._left_us = self._first_left_us(clock_us)
        return fired

    def _ends_by(self, clock_us: int | None) -> bool:
        return clock_us is None or self._left_us + self._of.size_us <= clock_us

    def _fire(self, left_us: int) -> list[Row]:
        values = {key: self._of.fn(left_us, rows) for key, rows in self._rows.items()}
        return [Row(left_us, key, value) for key, value in values.items() if value is not None]

    def _remove(self, before_us: int) -> None:
        left = {
            k: [row for row in rows if row.ts_us >= before_us] for k, rows in self._rows.items()
        }
        self._rows = {key: rows for key, rows in left.items() if rows}

    def _first_left_us(self, ts_us: int) -> int:
        """The left edge of the earliest window that holds this time."""
        return ((ts_us - self._of.size_us) // self._of.advance_us + 1) * self._of.advance_us
