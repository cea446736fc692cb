"""Merge on Spark: rows wait in a state table until the frontier has passed them.

`laxity.core.merge` decides, once a batch and from numbers the intake gathered as it cached the
rows; here the decision becomes a filter. Late rows are released at once, marked. Held rows stay in
the table `held`, which is appended to and expired by event time, never rewritten whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.ledger import Fates
from laxity.core.merge import FIRST_US, Frontier, Key, MergeMemory, MergeTerms, Read, decide, told
from laxity.core.report import Decision
from laxity.core.slack import Seen
from laxity.durations import show_us
from laxity.spark.gather import ONE_TASK, gathered
from laxity.spark.intake import measured, rank_of, riding
from laxity.spark.stage import Outcome, Turn
from laxity.spark.state import BUCKET

HELD = "held"
FRESH = "_fresh"
CLOSE_US = 1_000_000
ACCURACY = 10_000  # of lateness quantiles: a rank is off by a ten-thousandth at most


_Counted = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Merge:
    """Releases rows in total order, late ones first, none held past its slack."""

    sources: tuple[str, ...]
    rule: MergeTerms

    name = "merge"

    @property
    def terms(self) -> str:
        """The slack rule and the bound on holding."""
        hold_us = self.rule.hold_at_most_us
        held = "" if hold_us is None else f", held {show_us(hold_us)} at most"
        return f"in order of event, source ({', '.join(self.sources)}), sequence; slack " + (
            f"{self.rule.rule}{held}; late rows pass, marked"
        )

    def observes(self, memory: dict[str, Any]) -> Sequence[Column]:
        """How late the rows are, as far as the slack rule looks."""
        newest_us = MergeMemory.model_validate(memory).frontier.newest_us
        grid = self.rule.rule.grid
        if newest_us is None or not grid:
            return ()
        late_us = F.greatest(F.lit(newest_us) - F.unix_micros("_event"), F.lit(0))
        live_us = F.when(F.col("_dead").isNull(), late_us)
        if grid == (1.0,):
            return (F.array(F.max(live_us)).alias("lateness"),)
        return (F.percentile_approx(live_us, list(grid), ACCURACY).alias("lateness"),)

    def __call__(self, rows: DataFrame, turn: Turn) -> Outcome:
        """Hold what is new, release what the frontier has passed."""
        before = MergeMemory.model_validate(turn.memory)
        after = decide(self.rule, before, turn.sources, _seen(turn), turn.now_us)
        frontier = after.frontier
        if not turn.intake.live and frontier.frontier_us == before.frontier.frontier_us:
            return self._nothing_new(rows, after)
        read = self._read(frontier, before.position)
        waiting = rows.select("*", read.alias("_read"), F.lit(True).alias(FRESH))
        if (held := turn.tables.read(HELD)) is not None:
            old = held.drop(BUCKET).select("*", read.alias("_read"), F.lit(False).alias(FRESH))
            waiting = waiting.unionByName(old)
        n_rows = turn.intake.live + before.n_held
        waiting = gathered(waiting, n_rows)
        counts = self._hold(waiting, turn, frontier)
        released = waiting.where(F.col("_read").isNotNull()).drop(FRESH)
        order = self._order()
        return Outcome(
            released.sortWithinPartitions(*order),
            memory=lambda: _remembered(after, counts()),
            fates=lambda: _fates(counts()),
            numbers=lambda: _numbers(frontier, counts()),
            decisions=(_decision(frontier),),
            empty=frontier.frontier_us is None,
            ordered=lambda: (
                released.sortWithinPartitions(*order)
                if n_rows <= ONE_TASK
                else released.orderBy(*order)
            ),
        )

    def _hold(self, waiting: DataFrame, turn: Turn, frontier: Frontier) -> _Counted:
        """Keep the new rows that have to wait, and forget the old ones that need not any more.

        The rows are counted by the job that writes those to be kept, or by one of its own.
        """
        newest = [one.newest_us for one in turn.intake.heard.values() if one.newest_us is not None]
        frontier_us = frontier.frontier_us
        columns = self._counts(frontier_us)
        if newest and (frontier_us is None or max(newest) > frontier_us):
            observed, seen = riding(waiting, columns)
            still = observed.where(F.col("_read").isNull() & F.col(FRESH)).drop("_read", FRESH)
            turn.tables.append(HELD, still, bucket=F.unix_micros("_event"), newest=max(newest))
            counted = cache(lambda: self._with_last(seen.get, waiting))
        else:
            begun = turn.aside.begin(lambda: measured(waiting, columns))
            counted = cache(lambda: self._with_last(begun(), waiting))
        if frontier_us is not None:
            turn.tables.expire(HELD, frontier_us + 1)
        return counted

    def _with_last(self, counts: dict[str, Any], waiting: DataFrame) -> dict[str, Any]:
        """The counts, with the last key in order, should it not lie close to the frontier."""
        if counts["last"] is None and counts["last_us"] is not None:
            there = F.unix_micros("_event") == counts["last_us"]
            rows = waiting.where(there & F.col("_read").isin(Read.READY, Read.SLACK))
            counts |= measured(rows, [F.max(self._key()).alias("last")])
        return counts

    def _nothing_new(self, rows: DataFrame, after: MergeMemory) -> Outcome:
        """No row came and the frontier stands: nothing to do, and no job to find that out."""
        counts = {"last": None, "oldest_late": None, "held": after.n_held} | dict.fromkeys(Read, 0)
        return Outcome(
            rows.withColumn("_read", F.lit("")).where("false"),
            memory=lambda: _remembered(after, counts),
            fates=lambda: _fates(counts),
            numbers=lambda: _numbers(after.frontier, counts),
            decisions=(_decision(after.frontier),),
            empty=True,
        )

    def _read(self, frontier: Frontier, position: Key | None) -> Column:
        """How each row is read; null if it is to wait."""
        event_us = F.unix_micros("_event")
        merge_us, frontier_us = frontier.merge_us, frontier.frontier_us
        read = F.when(event_us <= (FIRST_US if merge_us is None else merge_us), Read.READY)
        read = read.when(event_us <= (FIRST_US if frontier_us is None else frontier_us), Read.SLACK)
        if position is None:
            return read
        return F.when(self._before(position), Read.LATE).otherwise(read)

    def _before(self, position: Key) -> Column:
        """Whether a row lies before a place in the total order."""
        event_us, rank, seq = F.unix_micros("_event"), rank_of(self.sources), F.col("_seq")
        at_us, by, nr = position
        tie = (rank < by) | ((rank == by) & (seq < nr))
        return (event_us < at_us) | ((event_us == at_us) & tie)

    def _order(self) -> tuple[Column, ...]:
        """Late rows first, then the total order."""
        late = F.col("_read") != Read.LATE
        return (late, F.col("_event"), rank_of(self.sources), F.col("_seq"))

    def _key(self) -> Column:
        """A row's place in the total order."""
        return F.struct(
            F.unix_micros("_event"), rank_of(self.sources).cast("bigint"), F.col("_seq")
        )

    def _counts(self, frontier_us: int | None) -> list[Column]:
        """Rows by how they were read, and the last of those in order.

        Whole keys are dear to compare, so only those close to the frontier are.
        """
        read, event_us = F.col("_read"), F.unix_micros("_event")
        marks = [F.count_if(read == mark).alias(mark) for mark in Read]
        in_order = read.isin(Read.READY, Read.SLACK)
        close = event_us > (FIRST_US if frontier_us is None else frontier_us - CLOSE_US)
        return [
            *marks,
            F.count_if(read.isNull()).alias("held"),
            F.max(F.when(in_order, event_us)).alias("last_us"),
            F.max(F.when(in_order & close, self._key())).alias("last"),
            F.min(F.when(read == Read.LATE, event_us)).alias("oldest_late"),
        ]


def _seen(turn: Turn) -> Seen:
    late_us = turn.seen.get("lateness") or ()
    latency_us = None if turn.latency is None else round(turn.latency.max_s * 1e6)
    return Seen(turn.intake.live, tuple(us for us in late_us if us is not None), latency_us)


def _decision(frontier: Frontier) -> Decision:
    values = frontier.model_dump(exclude={"why"})
    return Decision(stage="merge", what="frontier", why=told(frontier), values=values)


def _remembered(after: MergeMemory, counts: dict[str, Any]) -> dict[str, Any]:
    position = after.position if counts["last"] is None else tuple(counts["last"])
    memory = after.model_copy(update={"position": position, "n_held": counts["held"]})
    return memory.model_dump(mode="json")


def _fates(counts: dict[str, Any]) -> Fates:
    return Fates(released=sum(counts[mark] for mark in Read), held=counts["held"])


def _numbers(frontier: Frontier, counts: dict[str, Any]) -> dict[str, Any]:
    slack_s = None if frontier.slack_us is None else frontier.slack_us / 1e6
    told = {name: counts[name] for name in (*Read, "held")}
    return {"slack_s": slack_s, "oldest_late_us": counts["oldest_late"]} | told
