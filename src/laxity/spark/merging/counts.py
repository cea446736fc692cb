"""Count what a merge reads: rows by how they were read, and the last of those in order.

Nearly all rows of a large batch are *ready*, and a row costs more to count than to read. So of the
new rows only those near the frontier are looked at, by the job that writes those that have to wait;
how many came, how many of them late, the intake knows, and the rest are ready. Rows that waited are
counted apart, and not at all if every source is past them: then all are ready.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.merge import FIRST_US, MergeState, Read
from laxity.core.progress import Frontier
from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.rows.columns import EVENT_US, rank_of
from laxity.spark.rows.measure import Numbers, Riding, measure
from laxity.spark.rows.partitioning import ONE_TASK
from laxity.spark.rows.runtime_literal import runtime_sql

NEAR = 64  # the part of the way a frontier has come in a batch that is near it
_IN_ORDER = f"_read IN ('{Read.READY}', '{Read.SLACK}')"
_LAST = "last"  # the key of the last row read in order
_SUMS = (Read.READY, Read.SLACK, "held")
NOTHING: dict[str, Any] = {
    **dict.fromkeys((_LAST, "last_us", "arrived_us", "held_us", "held_arrived_us")),
    **dict.fromkeys(_SUMS, 0),
}


@dataclass(frozen=True)
class NewRows:
    """The new rows of a batch, as the intake saw them; when the first and the last of them came."""

    n_live: int
    n_late: int
    first_us: int | None
    last_us: int | None


@dataclass(frozen=True)
class MergeCounts:
    """Counts the rows of one batch, each with its `_read`; `came` says when they came, as SQL."""

    sources: tuple[str, ...]
    came: str
    fresh: NewRows
    before: MergeState
    frontier: Frontier

    def waiting(self, rows: DataFrame) -> tuple[Callable[[], DataFrame], dict[str, Riding]]:
        """What makes the new rows that have to wait; the job that reads those counts all."""
        near, held = Riding(), Riding()

        def made() -> DataFrame:
            counted = near.on(self._near(rows), [_slack(), self._last()])
            return held.on(counted.where("_read IS NULL"), self._helds()).drop("_read")

        return made, {"near": near, "held": held}

    def none_waits(self, rows: DataFrame) -> Numbers:
        """The counts of the new rows near the frontier if none has to wait."""
        return NOTHING | measure(self._near(rows), [_slack(), self._last()])

    def waited(self, rows: DataFrame, background: BackgroundJobs) -> Callable[[], Numbers]:
        """The counts of the rows that waited, but for the last key of them: only its time."""
        known = self._all_ready()
        if known is not None:
            return lambda: known
        columns = [_ready(), _slack(), _last_us(), self._arrived(), *self._helds()]
        return background.start(lambda: measure(rows, columns))

    def together(self, new: Numbers, old: Numbers, waited: DataFrame | None) -> Numbers:
        """The counts of all rows, and the last key in order; `waited` are the old ones."""
        last, old_us = new[_LAST], old["last_us"]
        if waited is not None and old_us is not None and (last is None or last[0] <= old_us):
            its_time = waited.where(f"{EVENT_US} = {runtime_sql(old_us)}")
            last = max(filter(None, (last, measure(its_time, [self._last()])[_LAST])))
        both = new, old
        return {
            **{name: new[name] + old[name] for name in _SUMS},
            _LAST: last,
            "arrived_us": _one_of(min, both, "arrived_us"),
            "held_us": _one_of(max, both, "held_us"),
            "held_arrived_us": _one_of(min, both, "held_arrived_us"),
        }

    def _near(self, rows: DataFrame) -> DataFrame:
        """Of new rows those that may be of slack or have to wait, and most likely the last one."""
        if self._since_us == FIRST_US:
            return rows
        return rows.where(f"{EVENT_US} >= {runtime_sql(self._since_us)}")

    @property
    def _since_us(self) -> int:
        merge_us, before_us = self.frontier.merge_us, self.before.frontier.frontier_us
        if merge_us is None or before_us is None or self.fresh.n_live <= ONE_TASK:
            return FIRST_US
        return merge_us - max(merge_us - before_us, 0) // NEAR

    def all_new(self, rows: DataFrame, near: Numbers) -> Numbers:
        """The counts of all new rows, given those of the rows near the frontier."""
        n_ready = self.fresh.n_live - self.fresh.n_late - near[Read.SLACK] - near["held"]
        counts = NOTHING | near | {Read.READY: n_ready}
        if near[_LAST] is None and n_ready:
            counts |= measure(rows, [self._last()])
        if self.fresh.n_live > near["held"]:
            counts["arrived_us"] = self._first_us(rows, near["held_arrived_us"])
        return counts

    def _first_us(self, rows: DataFrame, held_us: int | None) -> int:
        """When the first of the new rows that are read came; some are."""
        first_us, last_us = self.fresh.first_us, self.fresh.last_us
        if first_us == last_us or first_us != held_us:  # else it may be one that has to wait
            assert first_us is not None
            return first_us
        return int(measure(rows, [self._arrived()])["arrived_us"])

    def _all_ready(self) -> Numbers | None:
        """The counts of the rows that waited, if every source is past them."""
        before, merge_us = self.before, self.frontier.merge_us
        if before.held_us is None or merge_us is None or before.held_us > merge_us:
            return None
        known = {"last_us": before.held_us, "arrived_us": before.held_arrived_us}
        return NOTHING | known | {Read.READY: before.n_held}

    def _last(self) -> Column:
        key = f"struct({EVENT_US}, {rank_of(self.sources)}, _seq)"
        return F.expr(f"max(IF({_IN_ORDER}, {key}, NULL)) AS {_LAST}")

    def _arrived(self) -> Column:
        """When the first of the rows that are read came."""
        return F.expr(f"min(IF(_read IS NOT NULL, {self._came_us}, NULL)) AS arrived_us")

    def _helds(self) -> list[Column]:
        """How many rows have to wait, the newest of them, and when the first came."""
        return [
            F.expr("count_if(_read IS NULL) AS held"),
            F.expr(f"max(IF(_read IS NULL, {EVENT_US}, NULL)) AS held_us"),
            F.expr(f"min(IF(_read IS NULL, {self._came_us}, NULL)) AS held_arrived_us"),
        ]

    @property
    def _came_us(self) -> str:
        return f"unix_micros({self.came})"


def _one_of(choose: Callable[..., Any], both: tuple[Numbers, Numbers], name: str) -> Any:
    return choose((one[name] for one in both if one[name] is not None), default=None)


def _ready() -> Column:
    return F.expr(f"count_if(_read = '{Read.READY}') AS {Read.READY}")


def _slack() -> Column:
    return F.expr(f"count_if(_read = '{Read.SLACK}') AS {Read.SLACK}")


def _last_us() -> Column:
    return F.expr(f"max(IF({_IN_ORDER}, {EVENT_US}, NULL)) AS last_us")
