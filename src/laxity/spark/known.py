"""The rows a revise may look at in one batch: those that came, recent ones, and waiting ones."""

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.moment import Moment
from laxity.spark.changing import changing
from laxity.spark.holes import DOUBT, OLD
from laxity.spark.lates import Lates, as_came
from laxity.spark.places import US


@dataclass(frozen=True)
class Known:
    """The rows, with their places; `recent` are those of the last span before this batch."""

    came: DataFrame
    recent: DataFrame | None
    waited: DataFrame | None

    def in_doubt(self, moment: Moment) -> DataFrame:
        """All since the last span, and the late ones, of which nobody knows yet what they become.

        A late row may fill a hole or not, so it puts its key in doubt.
        """
        told = lateness(moment)
        parts = [_marked(self.came.where(~told["too_late"]), old=False, doubt=told["late"])]
        if self.recent is not None:
            parts.append(_marked(self.recent, old=True, doubt=F.lit(False)))
        if self.waited is not None:
            parts.append(_marked(self.waited, old=False, doubt=F.lit(True)))
        return reduce(DataFrame.unionByName, parts)

    def present(self, moment: Moment, lates: Lates | None) -> DataFrame:
        """All since the last span, late ones that are due included."""
        parts = [self.came.where(lateness(moment)["on_time"]).withColumn(OLD, F.lit(False))]
        if self.recent is not None:
            parts.append(self.recent.withColumn(OLD, F.lit(True)))
        if lates is not None and lates.n_due > lates.n_behind:
            due = as_came(lates.due()).where(F.col(US) > changing(moment.answered_us))
            parts.append(due.withColumn(OLD, F.lit(False)))
        return reduce(DataFrame.unionByName, parts)


def _marked(rows: DataFrame, old: bool, doubt: Column) -> DataFrame:
    return rows.withColumns({OLD: F.lit(old), DOUBT: doubt})


def lateness(moment: Moment) -> dict[str, Column]:
    """What tells rows that are on time, late, and too late, each on its own."""
    us = F.unix_micros("_event")
    before_us, accepted_us = changing(moment.before_us), changing(moment.accepted_us)
    return {
        "on_time": us >= before_us,
        "late": (us < before_us) & (us >= accepted_us),
        "too_late": us < accepted_us,
    }


def behind(lates: Lates | None, moment: Moment) -> DataFrame | None:
    """The rows that are due and too old to be recent."""
    if lates is None or not lates.n_behind:
        return None
    return as_came(lates.due()).where(F.col(US) <= changing(moment.answered_us))


def too_late(rows: DataFrame, moment: Moment) -> DataFrame:
    """The rows that are not accepted any more, and by how much."""
    late_by = F.expr(f"({moment.before_us}L - unix_micros(_event)) / 1e6")
    return rows.where(lateness(moment)["too_late"]).withColumn("late_by", late_by)
