"""Rows that did not make it, kept with the reason.

Two tables of a checkpoint: `dead` holds rows that cannot be processed (`_reason` says why), `late`
those rejected as too late (`late_by`, in seconds). Both keep the row itself as JSON in `_row`, so
that sources of any shape fit and nothing is lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.spark.rows.measure import observe
from laxity.spark.storage.state import Tables

DEAD = "dead"
LATE = "late"


def dead_rows(rows: DataFrame, batch_id: int) -> DataFrame:
    """The dead letters among the rows of a batch, as the table keeps them."""
    return rows.where(F.col("_dead").isNotNull()).select(
        F.lit(batch_id).cast("bigint").alias("batch_id"),
        "_source",
        F.col("_dead").alias("_reason"),
        "_event",
        "_arrival",
        F.col("_raw").alias("_row"),
    )


def late_rows(rows: DataFrame, batch_id: int) -> DataFrame:
    """Rows a stage rejected as too late, as the table keeps them."""
    return _letters(rows, "late_by", F.col("late_by").cast("double"), batch_id)


def refused_rows(rows: DataFrame, batch_id: int) -> DataFrame:
    """Rows a stage could not process, as the table of dead letters keeps them."""
    return _letters(rows, "_reason", F.col("_reason"), batch_id)


def _letters(rows: DataFrame, why: str, because: Column, batch_id: int) -> DataFrame:
    own = ("_source", "_event", "_arrival", "_seq", why)
    user = F.struct(*(name for name in rows.columns if name not in own))
    there = set(rows.columns)  # a user's function may have dropped all but the event's time
    source = F.col("_source") if "_source" in there else F.lit(None).cast("string")
    arrival = F.col("_arrival") if "_arrival" in there else F.lit(None).cast("timestamp")
    return rows.select(
        F.lit(batch_id).cast("bigint").alias("batch_id"),
        source.alias("_source"),
        because.alias(why),
        "_event",
        arrival.alias("_arrival"),
        F.to_json(user, {"ignoreNullFields": "false"}).alias("_row"),
    )


@dataclass(frozen=True)
class Posted:
    """Rejected rows of a batch; how many there are is known once they are written."""

    dead: Callable[[], int]
    late: Callable[[], int]


def post(tables: Tables, kind: str, rows: Sequence[DataFrame]) -> Callable[[], int]:
    """Plan to add rows to their table; ask after the write how many it got."""
    observed = [observe(one, [F.count(F.lit(1)).alias("n_rows")]) for one in rows]
    if observed:
        tables.append(kind, reduce(DataFrame.unionByName, [one for one, _ in observed]))
    return lambda: sum(int(riding.arrive()["n_rows"]) for _, riding in observed)


EMPTY = {
    DEAD: "batch_id bigint, _source string, _reason string, _event timestamp, _arrival timestamp, "
    "_row string",
    LATE: "batch_id bigint, _source string, late_by double, _event timestamp, _arrival timestamp, "
    "_row string",
}
