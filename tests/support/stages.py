"""Stages that exist only to try the batch protocol."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from laxity.core.ledger import Fates
from laxity.core.report import Decision
from laxity.spark.engine.stage import Outcome, Stage, Turn
from laxity.spark.rows.columns import EVENT_US
from laxity.spark.rows.measure import measure

SECOND = 1_000_000
NEVER_US = -(10**17)


@dataclass(frozen=True)
class Hold(Stage):
    """Holds rows until the newest event is `wait_us` past them; rejects rows behind that.

    Uses all a stage can use: its memory, a table it appends to and expires, one it replaces, and
    the late table.
    """

    wait_us: int = 5 * SECOND
    name: str = "hold"
    terms: str = "holds rows for a while"

    def __call__(self, rows: DataFrame, turn: Turn) -> Outcome:
        before_us = turn.memory.get("frontier_us", NEVER_US)
        newest = [one.newest_us for one in turn.intake.heard.values() if one.newest_us is not None]
        frontier_us = max([before_us, *(us - self.wait_us for us in newest)])
        event_us = F.unix_micros("_event")
        fresh = rows.where(event_us > before_us)
        held = turn.tables.read("held")
        waiting = fresh
        if held is not None:
            waiting = fresh.unionByName(held.where(event_us > before_us))
        late = rows.where(event_us <= before_us)
        counts = measure(
            waiting.select("_event").unionByName(late.select("_event")),
            [
                F.count_if(event_us <= before_us).alias("late_rejected"),
                F.count_if((event_us > before_us) & (event_us <= frontier_us)).alias("released"),
                F.count_if(event_us > frontier_us).alias("held"),
            ],
        )
        newest_us = max(newest, default=frontier_us)
        still = fresh.where(event_us > frontier_us)
        turn.tables.append("held", still, expire_by=EVENT_US, newest=newest_us)
        turn.tables.expire("held", frontier_us + 1)
        if turn.batch_id % 4 == 0:
            turn.tables.replace("last", rows.select("_source", "_event"))
        late_by = (F.lit(before_us) - event_us) / SECOND
        return Outcome(
            waiting.where(event_us <= frontier_us),
            memory=lambda: {"frontier_us": frontier_us},
            fates=lambda: Fates(**counts),
            decisions=(Decision(stage="hold", what="frontier", why="newest event − wait"),),
            late=lambda: late.withColumn("late_by", late_by),
        )


@dataclass(frozen=True)
class Leak(Stage):
    """Loses one row in ten and does not say so."""

    name: str = "leak"
    terms: str = "loses rows"

    def __call__(self, rows: DataFrame, turn: Turn) -> Outcome:
        kept = rows.where(F.col("_seq") % 10 != 0)
        counts = measure(kept, [F.count(F.lit(1)).alias("released")])
        return Outcome(kept, fates=lambda: Fates(**counts))
