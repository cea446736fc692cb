"""Where a revise stands in time, and what it remembers from one micro-batch to the next.

`before_us` is the newest event of all batches before, `newest_us` with this one. A row behind
`before_us` is late; one more than the bound on lateness behind it is too late. Results at or before
`answered_us` are out, those up to `watermark_us` come with this batch. Rows at or before it are not
recent any more, rows before `open_us` will be too late in every batch to come, and results at or
before `final_us` never change again.

A *drain* ends the input: all results up to the newest event are answered and final, and rows before
`floor_us` are too late for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from laxity.core.holes import BEGINNING
from laxity.core.revise import Shape
from laxity.core.stage_report import StageReport, shown

N_BUCKETS = 8  # in which kept rows are counted until they expire
RECENT = "recent"  # the rows of the last span that came on time
JOINED = "joined"  # and those that came late
CONTEXTS = "contexts"  # older rows, near holes

Stock = dict[str, dict[int, int]]


@dataclass(frozen=True)
class Moment:
    """The times that matter in one micro-batch; nothing came before the first.

    >>> moment = Moment(Shape.of([(2, 1), (4, 1)]), lateness_us=10, before_us=20, newest_us=25)
    >>> moment.accepted_us, moment.answered_us, moment.watermark_us, moment.open_us, moment.final_us
    (10, 14, 19, 15, 9)
    """

    shape: Shape
    lateness_us: int
    before_us: int
    newest_us: int
    floor_us: int | None = None
    drains: bool = False

    @property
    def span_us(self) -> int:
        """How far rows reach: the sum of the window sizes."""
        return self.shape.span_us

    @property
    def accepted_us(self) -> int:
        """The oldest event that is not too late for this batch."""
        floor_us = BEGINNING if self.floor_us is None else self.floor_us
        return max(self.before_us - self.lateness_us, floor_us)

    @property
    def answered_us(self) -> int:
        """Results up to here were answered by the batches before."""
        return self._drained(self.shape.watermark_us(self.before_us))

    @property
    def watermark_us(self) -> int:
        """Results up to here are answered once this batch is done."""
        if self.drains:
            return self.newest_us
        return self._drained(self.shape.watermark_us(self.newest_us))

    @property
    def open_us(self) -> int:
        """The oldest event that can still come."""
        return self.newest_us + 1 if self.drains else self.newest_us - self.lateness_us

    @property
    def final_us(self) -> int:
        """Results up to here never change again."""
        if self.drains:
            return self.newest_us
        return self._drained(self.shape.final_us(self.newest_us, self.lateness_us))

    def _drained(self, us: int) -> int:
        """Where results stand that a drain may have answered already."""
        return us if self.floor_us is None else max(us, self.floor_us - 1)

    @property
    def left(self) -> tuple[int, int | None]:
        """The newest event as the next batch finds it, and the floor; a drain moves past it."""
        if self.drains:
            return self.newest_us + 1, self.newest_us + 1
        return self.newest_us, self.floor_us

    def shelf(self, table: str) -> tuple[int, int]:
        """Where the rows of a table expire after this batch, and the width of a bucket of them."""
        newest_us, floor_us = self.newest_us, self.watermark_us
        if table == CONTEXTS:
            newest_us, floor_us = self.watermark_us, self.final_us
        return floor_us, (newest_us - floor_us) // N_BUCKETS + 1

    def stocked(self, before: Stock, added: Mapping[str, Mapping[int, int]]) -> Stock:
        """How many rows each table has once some were added, by when they expire.

        `added` are counts by bucket, counted from where rows expire. What is told is too much by
        the rows of a bucket or two.
        """
        stock: Stock = {}
        for table in (RECENT, JOINED, CONTEXTS):
            floor_us, width_us = self.shelf(table)
            counts = before.get(table, {})
            alive = {b: n for b, n in counts.items() if (b + 1) * width_us > floor_us}
            for nr, n_rows in added.get(table, {}).items():
                bucket = floor_us // width_us + nr + 1
                if n_rows:
                    alive[bucket] = alive.get(bucket, 0) + n_rows
            stock[table] = alive
        return stock


class ReviseState(BaseModel):
    """What a revise carries from batch to batch.

    `newest_us`: the newest event of all keys. `n_waiting`: late rows that wait for their trigger.
    `n_doubted`: how many keys were in doubt. `stock`: for each table how many rows are kept, by
    when they expire. `floor_us`: rows before it came too late for a drain.
    """

    model_config = ConfigDict(frozen=True)

    newest_us: int | None = None
    floor_us: int | None = None
    n_waiting: int = 0
    n_doubted: int | None = None
    stock: Stock = {}

    def moment(
        self, shape: Shape, lateness_us: int, newest_us: int | None, *, drain: bool = False
    ) -> Moment:
        """The times of a batch whose newest event is this; None if it has no rows."""
        before_us = BEGINNING if self.newest_us is None else self.newest_us
        after_us = before_us if newest_us is None else max(before_us, newest_us)
        drains = drain and after_us > BEGINNING
        return Moment(shape, lateness_us, before_us, after_us, self.floor_us, drains)

    @property
    def n_kept(self) -> int:
        """The rows kept."""
        return sum(n for counts in self.stock.values() for n in counts.values())


class ReviseReport(StageReport):
    """What a revise tells of a batch: its rows, what became of the late ones, and the results."""

    final_us: int | None = shown(
        "us", label="final", kind="time", about="results up to here never change again"
    )
    on_time: int = shown("rows", label="on time", kind="counter", about="rows on time")
    late: int = shown("rows", label="late", kind="counter", about="late rows")
    too_late: int = shown(
        "rows", label="too late", kind="counter", about="rows past the bound on lateness"
    )
    due: int = shown(
        "rows", label="due", kind="counter", column=True, about="late rows evaluated now"
    )
    holes: int = shown("holes", label="holes", kind="gauge", about="holes between recent rows")
    waiting: int = shown(
        "rows", label="waiting", kind="gauge", about="late rows that wait for their trigger"
    )
    dead: int = shown("rows", label="dead", kind="counter", about="late rows that nothing awaited")
    kept: int = shown(
        "rows", label="kept", kind="gauge", column=True, about="rows kept for those to come"
    )
    first: int = shown("results", label="first", kind="counter", about="results told first")
    tentative: int = shown(
        "results", label="tentative", kind="counter", about="results that may still change"
    )
    revised: int = shown(
        "results", label="revised", kind="counter", column=True, about="results told again"
    )
    retracted: int = shown(
        "results", label="retracted", kind="counter", column=True, about="results taken back"
    )
