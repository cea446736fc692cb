"""The rows a revise may look at in one batch: those that came, recent ones, and waiting ones."""

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.moment import Moment
from laxity.spark.changing import changing

OLD = "_old"  # whether a row is kept from the batches before, and was on time or due there
NEW = "_new"  # whether it is late, in this batch or since it waits; on time if neither
WAITED = "_waited"  # whether it was late in a batch before


@dataclass(frozen=True)
class Known:
    """The rows, with their places; `recent` are those of the last span before this batch."""

    came: DataFrame
    recent: DataFrame | None
    waited: DataFrame | None

    def accepted(self, moment: Moment) -> DataFrame:
        """All but those too late, marked."""
        told = lateness(moment)
        parts = [_marked(self.came.where(~told["too_late"]), new=told["late"])]
        if self.recent is not None:
            parts.append(kept_before(self.recent))
        if self.waited is not None:
            parts.append(_marked(self.waited, new=F.lit(True), waited=True))
        return reduce(DataFrame.unionByName, parts)

    def on_time(self, moment: Moment) -> DataFrame:
        """Those that came on time."""
        return self.came.where(lateness(moment)["on_time"])

    def present(self, moment: Moment, due: DataFrame | None) -> DataFrame:
        """All since the last span before this batch, late ones that are due and so recent too."""
        parts = [self.on_time(moment), self.recent, due]
        return reduce(DataFrame.unionByName, (rows for rows in parts if rows is not None))


def kept_before(rows: DataFrame) -> DataFrame:
    """Rows kept from the batches before, marked."""
    return _marked(rows, old=True)


def _marked(
    rows: DataFrame, *, old: bool = False, new: Column | None = None, waited: bool = False
) -> DataFrame:
    is_new = F.lit(False) if new is None else new
    return rows.withColumns({OLD: F.lit(old), NEW: is_new, WAITED: F.lit(waited)})


def lateness(moment: Moment) -> dict[str, Column]:
    """What tells rows that are on time, late, and too late, each on its own."""
    us = F.unix_micros("_event")
    before_us, accepted_us = changing(moment.before_us), changing(moment.accepted_us)
    return {
        "on_time": us >= before_us,
        "late": (us < before_us) & (us >= accepted_us),
        "too_late": us < accepted_us,
    }


def too_late(rows: DataFrame, moment: Moment) -> DataFrame:
    """The rows that are not accepted any more, and by how much."""
    late_by = F.expr(f"({moment.before_us}L - unix_micros(_event)) / 1e6")
    return rows.where(lateness(moment)["too_late"]).withColumn("late_by", late_by)
