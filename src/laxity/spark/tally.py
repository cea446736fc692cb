"""Count what a merge reads: rows by how they were read, and the last of those in order.

The new rows are counted by the job that writes those that have to wait. Rows that waited are
counted apart, and not at all if every source is past them: then all are ready.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.merge import FIRST_US, Frontier, MergeMemory, Read
from laxity.spark.aside import Asides
from laxity.spark.changing import EVENT_US, changing_in
from laxity.spark.gather import ONE_TASK
from laxity.spark.intake import measured, rank_of, riding

CAME = "_came"  # when a row came to the merge, where that is not when it arrived
_IN_ORDER = f"_read IN ('{Read.READY}', '{Read.SLACK}')"
LAST = "last"  # the key of the last row read in order, where whole keys are compared
_SUMS = (Read.READY, Read.SLACK, "held")
_LARGEST = ("last_us", "held_us")
_SMALLEST = ("arrived_us", "held_arrived_us")
NOTHING: dict[str, Any] = dict.fromkeys((LAST, *_LARGEST, *_SMALLEST)) | dict.fromkeys(_SUMS, 0)

Numbers = dict[str, Any]


@dataclass(frozen=True)
class Tally:
    """Counts the rows of one batch, `n_rows` in all, each with its `_read`."""

    sources: tuple[str, ...]
    frontier: Frontier
    n_rows: int

    def riding(self, rows: DataFrame) -> tuple[DataFrame, Callable[[], Numbers]]:
        """The rows that have to wait; the job that reads them counts all."""
        counted, seen = riding(rows, [*_reads(rows), *self._last()])
        waiting, held = riding(counted.where("_read IS NULL"), _helds(rows))
        return waiting.drop("_read"), lambda: seen.get | held.get

    def measured(self, rows: DataFrame) -> Numbers:
        """The counts of rows, in a job of their own."""
        return measured(rows, [*_reads(rows), *_helds(rows), *self._last()])

    def waited(
        self, rows: DataFrame, before: MergeMemory, aside: Asides
    ) -> Callable[[Numbers], Numbers]:
        """The counts of the rows that waited, given those of the new ones."""
        known = self._all_ready(before)
        if known is None:
            begun = aside.begin(lambda: self.measured(rows))
            return lambda new: begun()
        return lambda new: known if _tells_last(new, known) else self.measured(rows)

    def _all_ready(self, before: MergeMemory) -> Numbers | None:
        """The counts of the rows that waited, if every source is past them."""
        held_us, merge_us = before.held_us, self.frontier.merge_us
        if held_us is None or merge_us is None or held_us > merge_us:
            return None
        told = {"last_us": held_us, "arrived_us": before.held_arrived_us}
        return NOTHING | told | {Read.READY: before.n_held}

    def together(self, new: Numbers, old: Numbers, waiting: DataFrame) -> Numbers:
        """The counts of all rows, and the last key in order; `waiting` are all of them."""
        counts = _sum(new, old)
        if self._few:
            lasts = [tuple(one[LAST]) for one in (new, old) if one.get(LAST) is not None]
            return counts | {LAST: max(lasts, default=None)}
        at_us = self._at_us
        if counts["last_us"] not in (None, at_us):
            at_us = counts["last_us"]
            counts |= measured(waiting, self._seqs(at_us))
        seqs = [(at_us, n, counts[f"seq_{n}"]) for n in range(len(self.sources))]
        return counts | {LAST: max((key for key in seqs if key[2] is not None), default=None)}

    @property
    def _few(self) -> bool:
        """Whether whole keys are compared; that is dear, so of many rows only those of one time.

        Most likely the last row is at the frontier; if none is there, all are looked at again.
        """
        return self.n_rows <= ONE_TASK

    def _last(self) -> Sequence[Column]:
        return [self._key()] if self._few else self._seqs(self._at_us)

    @property
    def _at_us(self) -> int:
        """Where the last row most likely is."""
        frontier_us = self.frontier.frontier_us
        return FIRST_US if frontier_us is None else frontier_us

    def _key(self) -> Column:
        key = f"struct({EVENT_US}, {rank_of(self.sources)}, _seq)"
        return F.expr(f"max(IF({_IN_ORDER}, {key}, NULL)) AS {LAST}")

    def _seqs(self, at_us: int) -> Sequence[Column]:
        """The largest sequence of each source among the rows read in order at that time."""
        there = f"{EVENT_US} = {changing_in(at_us)} AND {_IN_ORDER} AND {rank_of(self.sources)}"
        n_sources = len(self.sources)
        return [F.expr(f"max(IF({there} = {n}, _seq, NULL)) AS seq_{n}") for n in range(n_sources)]


def _tells_last(new: Numbers, old: Numbers) -> bool:
    """Whether the last of all rows is a new one, whatever the last of the old ones is."""
    return new["last_us"] is not None and new["last_us"] > old["last_us"]


def _sum(new: Numbers, old: Numbers) -> Numbers:
    def picked(name: str) -> list[Any]:
        return [one[name] for one in (new, old) if one.get(name) is not None]

    largest = [name for name in new if name in _LARGEST or name.startswith("seq_")]
    return (
        {name: sum(picked(name)) for name in _SUMS}
        | {name: max(picked(name), default=None) for name in largest}
        | {name: min(picked(name), default=None) for name in _SMALLEST}
    )


def _came_us(rows: DataFrame) -> str:
    return f"unix_micros({CAME if CAME in rows.columns else '_arrival'})"


def _reads(rows: DataFrame) -> list[Column]:
    """How many rows were read in each way, the newest of them in order, and when the first came."""
    return [
        F.expr(f"count_if(_read = '{Read.READY}') AS {Read.READY}"),
        F.expr(f"count_if(_read = '{Read.SLACK}') AS {Read.SLACK}"),
        F.expr(f"max(IF({_IN_ORDER}, {EVENT_US}, NULL)) AS last_us"),
        F.expr(f"min(IF(_read IS NOT NULL, {_came_us(rows)}, NULL)) AS arrived_us"),
    ]


def _helds(rows: DataFrame) -> list[Column]:
    """How many rows have to wait, the newest of them, and when the first came."""
    return [
        F.expr("count_if(_read IS NULL) AS held"),
        F.expr(f"max(IF(_read IS NULL, {EVENT_US}, NULL)) AS held_us"),
        F.expr(f"min(IF(_read IS NULL, {_came_us(rows)}, NULL)) AS held_arrived_us"),
    ]
