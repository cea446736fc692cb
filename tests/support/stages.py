"""Stages that exist only to try the batch protocol."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from laxity.core.ledger import Fates
from laxity.core.report import Decision
from laxity.spark.engine.planned import Counts, Needs, Planned, StageResult
from laxity.spark.engine.stage import BatchContext, Stage
from laxity.spark.rows.columns import EVENT_US

SECOND = 1_000_000
NEVER_US = -(10**17)


@dataclass(frozen=True)
class Hold(Stage):
    """Holds rows until the newest event is `wait_us` past them; rejects rows behind that.

    Uses all a stage can use: its state, a table it appends to and expires, one it replaces, and
    the late table.
    """

    wait_us: int = 5 * SECOND
    name: str = "hold"
    terms: str = "holds rows for a while"

    def needs(self, state: dict[str, Any]) -> Needs:
        return Needs({"newest_us": f"max({EVENT_US})"})

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        before_us = context.state.get("frontier_us", NEVER_US)
        newest_us = context.numbers.get("newest_us") or NEVER_US
        wait_us = 0 if context.drain else self.wait_us
        newest_us = max(newest_us, context.state.get("newest_us", NEVER_US))
        frontier_us = max(before_us, newest_us - wait_us)
        event_us = F.unix_micros("_event")
        fresh = rows.where(event_us > before_us)
        held = context.tables.read("held")
        waiting = fresh
        if held is not None:
            waiting = fresh.unionByName(held.where(event_us > before_us))
        late = rows.where(event_us <= before_us)
        counts = context.measure(
            waiting.select("_event").unionByName(late.select("_event")),
            [
                F.count_if(event_us <= before_us).alias("late_rejected"),
                F.count_if((event_us > before_us) & (event_us <= frontier_us)).alias("released"),
                F.count_if(event_us > frontier_us).alias("held"),
            ],
        )
        still = fresh.where(event_us > frontier_us)
        context.tables.append("held", still, expire_by=EVENT_US, newest=newest_us)
        context.tables.expire("held", frontier_us + 1)
        if context.batch_id % 4 == 0:
            context.tables.replace("last", rows.select("_source", "_event"))
        late_by = (F.lit(before_us) - event_us) / SECOND

        def finish(counted: Counts, before: StageResult | None) -> StageResult:
            return StageResult(
                state={"frontier_us": frontier_us, "newest_us": newest_us},
                fates=Fates(**counted["fates"]),
                decisions=(Decision(stage="hold", what="frontier", why="newest event − wait"),),
                late=lambda: late.withColumn("late_by", late_by),
            )

        return Planned(waiting.where(event_us <= frontier_us), finish, {"fates": counts})


@dataclass(frozen=True)
class Leak(Stage):
    """Loses one row in ten and does not say so."""

    name: str = "leak"
    terms: str = "loses rows"

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        kept = rows.where(F.col("_seq") % 10 != 0)
        counts = context.measure(kept, [F.count(F.lit(1)).alias("released")])
        return Planned(
            kept,
            lambda counted, before: StageResult(fates=Fates(**counted["fates"])),
            {"fates": counts},
        )


@dataclass(frozen=True)
class Reject(Stage):
    """Refuses every tenth row, and counts on the way of the job that writes the others.

    `early`: asks for the count while it plans, when nobody can know it. `unread`: counts rows that
    no job reads.
    """

    early: bool = False
    unread: bool = False
    name: str = "reject"
    terms: str = "refuses rows"

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        counts = ["count_if(_seq % 10 = 0) AS dead", "count_if(_seq % 10 <> 0) AS released"]
        counted, riding = context.observe(rows, counts)
        if self.early:
            _ = riding.numbers
        passed = (rows if self.unread else counted).where("_seq % 10 <> 0")
        refused = rows.where("_seq % 10 = 0").withColumn("_reason", F.lit("a tenth"))

        def finish(counted: Counts, before: StageResult | None) -> StageResult:
            return StageResult(fates=Fates(**counted["fates"]), dead=lambda: refused)

        return Planned(passed, finish, {"fates": riding})


@dataclass(frozen=True)
class Asks(Stage):
    """Asks for numbers that it has not said it needs."""

    name: str = "asks"
    terms: str = "asks for numbers"

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        _ = context.numbers
        raise AssertionError("nobody could know them")
