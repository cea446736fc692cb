"""Join two sources of a merged stream in a sliding window, on Spark.

The meaning is that of `laxity.core.join`: rows are taken as the merge reads them, a window of
`within` moves with the newest row read, and a row meets what is still in it. Within a batch the
window's place when a row is read is known beforehand (late rows come first, the others in order),
so a batch is one equi-join on the key and a stretch of time.

Rows that left the window stay a while as *ghosts*: they meet nobody, but tell how many pairs were
missed. A source in its own order sends nothing older than the merge point, so ghosts live until
that has passed them, and `GHOST_WINDOWS` at most.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any

from pydantic import BaseModel, ConfigDict
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.merge import Read
from laxity.core.progress import Frontier
from laxity.durations import show_us
from laxity.spark.engine.planned import Counts, Planned, StageResult
from laxity.spark.engine.stage import BatchContext, Stage
from laxity.spark.rows.columns import EVENT_US
from laxity.spark.rows.partitioning import coalesced
from laxity.spark.rows.runtime_literal import runtime_literal

WINDOW = "window"
GHOST_WINDOWS = 20
BOTH_NEW, LEFT_NEW, RIGHT_NEW = 0, 1, 2  # which rows of a pair this batch has read

_Parts = list[tuple[DataFrame, tuple[int, ...]]]  # rows, and the kinds of pair they can be in


class JoinState(BaseModel):
    """What a join carries from batch to batch.

    `read_us`: the newest time read. `merge_us`: where the merge point was. `floor_us`: rows before
    it have been forgotten.
    """

    model_config = ConfigDict(frozen=True)

    read_us: int | None = None
    merge_us: int | None = None
    floor_us: int | None = None


@dataclass(frozen=True)
class Join(Stage):
    """Pairs rows of two sources with equal keys, at most `within_us` apart, that fit `when`.

    `sources` are all sources of the merge, in the order of their rank.
    """

    left: str
    right: str
    on: tuple[str, ...]
    within_us: int
    when: str
    sources: tuple[str, ...]

    name = "join"
    makes_rows = True

    @property
    def terms(self) -> str:
        """What is paired with what."""
        pair = f"{self.left} with {self.right} on {', '.join(self.on)}"
        return f"{pair} within {show_us(self.within_us)} when {self.when}"

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        """Pair the rows just read with each other and with the window's."""
        merge = context.before
        assert merge is not None, "a join stands right behind a merge"
        if merge.empty:
            nothing = self.among(rows.where("false"))
            result = StageResult(context.state, report=_nothing())
            return Planned(nothing, lambda counts, before: result, empty=True)
        state = JoinState.model_validate(context.state)
        new, old = self._new(rows), context.tables.read(WINDOW)
        if old is not None:
            old = coalesced(old, context.stats.live)
        pairs, riding = context.observe(self.pairs(new, old, state.read_us), _counts())
        assert merge.frontier is not None, "what a merge releases has a frontier"
        frontier, floor_us = merge.frontier, self._floor_us(state)
        self._keep(new, context, frontier, floor_us)

        def finish(counts: Counts, before: StageResult | None) -> StageResult:
            assert before is not None
            assert before.passed is not None
            read_us, late_us = before.passed.last_us, before.passed.oldest_late_us
            after = JoinState(read_us=read_us, merge_us=frontier.merge_us, floor_us=floor_us)
            exact = self._exact(late_us, state.floor_us)
            return StageResult(after.model_dump(), report=counts["pairs"] | {"exact": exact})

        return Planned(_results(pairs, self.when), finish, {"pairs": riding})

    def among(self, rows: DataFrame) -> DataFrame:
        """The results of pairing rows with each other alone."""
        return _results(self.pairs(self._new(rows), None, None), self.when)

    def _new(self, rows: DataFrame) -> DataFrame:
        """The rows of the two sides, as the window keeps them."""
        own = ("_source", "_event", "_arrival", "_seq", "_read")
        of_sides = F.col("_source").isin(self.left, self.right)
        return rows.where(of_sides).select(*own, self.left, self.right)

    def pairs(self, new: DataFrame, old: DataFrame | None, read_us: int | None) -> DataFrame:
        """Every pair that an in-order run compares and that has a new row; `_found` if we do too.

        `read_us` is the newest time read before: where the window stood when late rows came.
        """
        lefts: _Parts = [(new, (BOTH_NEW, LEFT_NEW))]
        rights: _Parts = [(new, (BOTH_NEW, RIGHT_NEW))]
        if old is not None:
            lefts.append((old, (RIGHT_NEW,)))
            rights.append((old, (LEFT_NEW,)))
        left = self._side(self.left, "_left", lefts)
        right = self._side(self.right, "_right", rights)
        near = [F.col("_stretch") + step for step in (-1, 0, 1)]
        left = left.withColumn("_stretch", F.explode(F.array(*near)))
        both = left.join(right, [*self.on, "_turn", "_stretch"])
        left_read, right_read = F.col("_left"), F.col("_right")
        left_second = (F.col("_turn") == LEFT_NEW) | (
            (F.col("_turn") == BOTH_NEW) & (left_read["place"] > right_read["place"])
        )
        first = F.when(left_second, right_read).otherwise(left_read)
        second = F.when(left_second, left_read).otherwise(right_read)
        clock_us = (
            second["us"]
            if read_us is None
            else F.greatest(second["us"], runtime_literal(read_us, second["us"]))
        )
        return both.where(F.abs(left_read["us"] - right_read["us"]) <= self.within_us).select(
            *self.on,
            F.greatest(first["event"], second["event"]).alias("_event"),
            F.greatest(first["arrival"], second["arrival"]).alias("_arrival"),
            second["read"].alias("_read"),
            self.left,
            self.right,
            (first["us"] >= clock_us - self.within_us).alias("_found"),
        )

    def _side(self, source: str, name: str, parts: _Parts) -> DataFrame:
        """One side's rows, with the kinds of pair each can be in, and how it was read."""
        us, rank = F.unix_micros("_event"), F.lit(self.sources.index(source))
        read = F.struct(
            us.alias("us"),
            F.col("_event").alias("event"),
            F.col("_arrival").alias("arrival"),
            F.col("_read").alias("read"),
            F.struct(F.col("_read") != Read.LATE, us, rank, F.col("_seq")).alias("place"),
        )
        sides = [
            rows.where(F.col("_source") == source).select(
                *(F.col(source)[key].alias(key) for key in self.on),
                F.explode(F.array(*map(F.lit, turns))).alias("_turn"),
                F.floor(us / max(self.within_us, 1)).alias("_stretch"),
                read.alias(name),
                source,
            )
            for rows, turns in parts
        ]
        return reduce(DataFrame.unionByName, sides)

    def _floor_us(self, state: JoinState) -> int | None:
        """The oldest event that this or a later batch may be compared with; it never falls."""
        if state.read_us is None:
            return None
        oldest_us = state.read_us - GHOST_WINDOWS * self.within_us
        if state.merge_us is not None:
            oldest_us = max(oldest_us, min(state.merge_us, state.read_us))
        floors_us = [oldest_us - self.within_us, state.floor_us]
        return max(us for us in floors_us if us is not None)

    def _keep(
        self, new: DataFrame, context: BatchContext, frontier: Frontier, floor_us: int | None
    ) -> None:
        """Put the new rows into the window, and forget what nobody can meet any more."""
        newest_us = frontier.frontier_us
        context.tables.append(WINDOW, new, expire_by=EVENT_US, newest=newest_us)
        if floor_us is not None:
            context.tables.expire(WINDOW, floor_us)

    def _exact(self, late_us: int | None, floor_us: int | None) -> bool:
        """Whether no late row was so old that what it missed is forgotten."""
        return floor_us is None or late_us is None or late_us >= floor_us + self.within_us


def _results(pairs: DataFrame, when: str) -> DataFrame:
    """The pairs that were found and fit."""
    return pairs.where("_found").where(when).drop("_found")


def _counts() -> list[Column]:
    found = F.col("_found")
    return [F.count_if(found).alias("compared"), F.count_if(~found).alias("missed")]


def _nothing() -> dict[str, Any]:
    return {"compared": 0, "missed": 0, "exact": True}
