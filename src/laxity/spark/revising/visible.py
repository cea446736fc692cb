"""The rows a revise may look at in one batch: those that came, recent ones, and waiting ones."""

from dataclasses import dataclass
from functools import cached_property, reduce

from pyspark.sql import DataFrame

from laxity.core.moment import Moment
from laxity.spark.revising.marks import DUE, NEW, OLD, REASON, US, WAITED, WAITS
from laxity.spark.rows.columns import EVENT_US
from laxity.spark.rows.runtime_literal import runtime_sql


@dataclass(frozen=True)
class VisibleRows:
    """The rows, with their places; `recent` are those of the last span before this batch.

    At which `moment` in it does not matter: what is late is known from the batches before.
    """

    moment: Moment
    came: DataFrame
    recent: DataFrame | None
    waited: DataFrame | None

    @cached_property
    def accepted(self) -> DataFrame:
        """All but those too late, marked."""
        classes = lateness(self.moment)
        parts = [_marked(self.came.where(f"NOT ({classes['too_late']})"), new=classes["late"])]
        if self.recent is not None:
            parts.append(kept_before(self.recent))
        if self.waited is not None:
            parts.append(_marked(self.waited, new="true", waited="true"))
        return reduce(DataFrame.unionByName, parts)

    @cached_property
    def on_time(self) -> DataFrame:
        """Those that came on time."""
        return self.came.where(lateness(self.moment)["on_time"])

    def present(self, due: DataFrame | None) -> DataFrame:
        """All since the last span before this batch, late ones that are due and so recent too."""
        parts = [self.on_time, self.recent, due]
        return reduce(DataFrame.unionByName, (rows for rows in parts if rows is not None))


def kept_before(rows: DataFrame) -> DataFrame:
    """Rows kept from the batches before, marked."""
    return _marked(rows, old="true")


def _marked(
    rows: DataFrame, *, old: str = "false", new: str = "false", waited: str = "false"
) -> DataFrame:
    return rows.selectExpr("*", f"{old} AS {OLD}", f"{new} AS {NEW}", f"{waited} AS {WAITED}")


def lateness(moment: Moment) -> dict[str, str]:
    """What tells rows that are on time, late, and too late, each on its own, as SQL."""
    before_us, accepted_us = (
        runtime_sql(moment.before_us),
        runtime_sql(moment.accepted_us),
    )
    return {
        "on_time": f"{EVENT_US} >= {before_us}",
        "late": f"{EVENT_US} < {before_us} AND {EVENT_US} >= {accepted_us}",
        "too_late": f"{EVENT_US} < {accepted_us}",
    }


def too_late(rows: DataFrame, moment: Moment) -> DataFrame:
    """The rows that are not accepted any more, and by how much."""
    late_by = f"({moment.before_us}L - {EVENT_US}) / 1e6 AS late_by"
    return rows.where(lateness(moment)["too_late"]).selectExpr("*", late_by)


@dataclass(frozen=True)
class SuspectRows:
    """All rows known of the keys in doubt, a key's in one place; about `n_keys` of them."""

    rows: DataFrame
    n_keys: int


def fates(moment: Moment) -> dict[str, str]:
    """Which of the rows in doubt are due, wait, and are dead, as SQL."""
    return {
        "due": DUE,
        "waiting": WAITS,
        "dead": f"{REASON} IS NOT NULL",
        "behind": f"{DUE} AND {US} <= {runtime_sql(moment.answered_us, US)}",
    }
