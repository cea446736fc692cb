"""Join two sources of a merged stream in a sliding window, on Spark.

The meaning is that of `laxity.core.join`: rows are taken as the merge reads them, a window of
`within` moves with the newest row read, and a row meets what is still in it. Within a batch the
window's place when a row is read is known beforehand (late rows come first, the others in order),
so a batch is one equi-join on the key and a stretch of time.

Rows that left the window stay a while as *ghosts*: they meet nobody, but tell how many pairs were
missed. A source in its own order sends nothing older than the merge point, so ghosts live until
that has passed them, and `GHOST_WINDOWS` at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.merge import MergeMemory, Read
from laxity.durations import show_us
from laxity.spark.intake import measured, riding
from laxity.spark.stage import Outcome, Turn

WINDOW = "window"
GHOST_WINDOWS = 20
BOTH_NEW, LEFT_NEW, RIGHT_NEW = 0, 1, 2  # which rows of a pair this batch has read

_Parts = list[tuple[DataFrame, tuple[int, ...]]]  # rows, and the kinds of pair they can be in


@dataclass(frozen=True)
class Join:
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

    @property
    def terms(self) -> str:
        """What is paired with what."""
        pair = f"{self.left} with {self.right} on {', '.join(self.on)}"
        return f"{pair} within {show_us(self.within_us)} when {self.when}"

    def observes(self, memory: dict[str, Any]) -> Sequence[Column]:
        """Nothing: the merge before it has."""
        return ()

    def __call__(self, rows: DataFrame, turn: Turn) -> Outcome:
        """Pair the rows just read with each other and with the window's."""
        assert turn.before is not None, "a join stands right behind a merge"
        merge, n_read = MergeMemory.model_validate(turn.before.memory), turn.before.numbers()
        if merge.position is None or not any(n_read[mark] for mark in Read):
            return Outcome(self.among(rows.where("false")), turn.memory, numbers=_none)
        new = self._new(rows)
        before_us, floor_us = turn.memory.get("newest_us"), turn.memory.get("floor_us")
        pairs = self.pairs(new, turn.tables.read(WINDOW), before_us)
        pairs, seen = riding(pairs, _counts())
        memory = {"newest_us": merge.position[0], "floor_us": self._floor_us(merge, floor_us)}
        self._keep(new, turn, memory)
        unsure = self._unsure(new, floor_us) if n_read[Read.LATE] else 0
        return Outcome(
            _results(pairs, self.when), memory, numbers=lambda: seen.get | {"unsure": unsure}
        )

    def among(self, rows: DataFrame) -> DataFrame:
        """The results of pairing rows with each other alone."""
        return _results(self.pairs(self._new(rows), None, None), self.when)

    def _new(self, rows: DataFrame) -> DataFrame:
        """The rows of the two sides, as the window keeps them."""
        own = ("_source", "_event", "_arrival", "_seq", "_read")
        mine = F.col("_source").isin(self.left, self.right)
        return rows.where(mine).select(*own, self.left, self.right)

    def pairs(self, new: DataFrame, old: DataFrame | None, before_us: int | None) -> DataFrame:
        """Every pair that an in-order run compares and that has a new row; `_found` if we do too.

        `before_us` is the newest time read before: where the window stood when late rows came.
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
        clock_us = second["us"] if before_us is None else F.greatest(second["us"], F.lit(before_us))
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

    def _floor_us(self, merge: MergeMemory, before_us: int | None) -> int:
        """The oldest event that a row still to come may be compared with; it never falls."""
        assert merge.position is not None
        newest_us, merge_us = merge.position[0], merge.frontier.merge_us
        oldest_us = newest_us - GHOST_WINDOWS * self.within_us
        if merge_us is not None:
            oldest_us = max(oldest_us, min(merge_us, newest_us))
        floor_us = oldest_us - self.within_us
        return floor_us if before_us is None else max(floor_us, before_us)

    def _keep(self, new: DataFrame, turn: Turn, memory: dict[str, int]) -> None:
        """Put the new rows into the window, and forget what nobody can meet any more."""
        us = F.unix_micros("_event")
        turn.tables.append(
            WINDOW, new.where(us >= memory["floor_us"]), bucket=us, newest=memory["newest_us"]
        )
        turn.tables.expire(WINDOW, memory["floor_us"])

    def _unsure(self, new: DataFrame, floor_us: int | None) -> int:
        """Late rows so old that nobody knows any more what they would have met."""
        if floor_us is None:
            return 0
        too_old = F.unix_micros("_event") < floor_us + self.within_us
        late = F.col("_read") == Read.LATE
        counted = measured(new, [F.count_if(late & too_old).alias("unsure")])
        return int(counted["unsure"])


def _results(pairs: DataFrame, when: str) -> DataFrame:
    """The pairs that were found and fit."""
    return pairs.where("_found").where(when).drop("_found")


def _counts() -> list[Column]:
    found = F.col("_found")
    return [F.count_if(found).alias("compared"), F.count_if(~found).alias("missed")]


def _none() -> dict[str, int]:
    return {"compared": 0, "missed": 0, "unsure": 0}
