"""The keys that are in doubt: late rows came or wait, or rows may be missing.

Most keys are not. A cheap count of all keys finds those that are; all rows known of them are then
brought together once, and whatever is to be found out about late rows (`late_rows.py`) and missing
ones (`holes.py`) is worked out there.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from laxity.core.moment import Moment
from laxity.spark.revising.marks import AT, FRESH, KEY, LATELY, NEW, NOTE, NOTED, OLD, ON_TIME, US
from laxity.spark.revising.places import Places
from laxity.spark.rows.runtime_literal import runtime_literal, runtime_sql


@dataclass(frozen=True)
class SuspectKeys:
    """The keys in doubt, one row each; how many, and how many of them have no recent row."""

    rows: DataFrame
    keys: int
    fresh: int


def late_keys(rows: DataFrame, places: Places) -> DataFrame:
    """The keys that have a late row, where nobody sees which rows are missing."""
    keys = rows.groupBy(*places.names).agg(
        F.expr(f"bool_or({NEW}) AS {NEW}"),
        F.expr(f"count_if(NOT {NEW}) AS {ON_TIME}"),
    )
    said = (
        f"false AS {FRESH}",
        f"true AS {LATELY}",
        ON_TIME,
        f"CAST(NULL AS array<{NOTE}>) AS {NOTED}",
    )
    return keys.where(NEW).selectExpr(f"{places.key_text} AS {KEY}", *said)


def summed(rows: DataFrame, holes: DataFrame | None, places: Places, moment: Moment) -> DataFrame:
    """What the rows of each key say together, and whether any of the `holes` left behind is near.

    It does not matter yet what the newest event of all is.
    """
    told = rows.selectExpr(*places.names, AT, US, OLD, NEW)
    if holes is not None:
        from_us = runtime_sql(moment.answered_us - moment.span_us, "_last_us")
        nothing = [f"CAST(NULL AS BIGINT) AS {name}" for name in (AT, US)]
        marks = [*places.names, *nothing, f"false AS {OLD}", f"true AS {NEW}"]
        told = told.union(holes.where(f"_last_us > {from_us}").selectExpr(*marks))
    return _summed(told, places)


def suspects(keys: DataFrame, holes: DataFrame | None, places: Places, moment: Moment) -> DataFrame:
    """Of `summed` keys those that have a late row or may have a hole near.

    A key is above suspicion if its rows lie a step apart without a gap, reach up to the newest
    event of all, go on from rows of the batches before, none of them is late, and no hole left
    behind is near. A bit for every place tells a row that came twice from one that fills a gap.
    """
    goes_on = F.col("_last_us") >= runtime_literal(moment.newest_us, F.col("_last_us"))
    clean = F.coalesce(F.col("_full") & goes_on & ~F.col(FRESH), F.lit(False))
    found = keys.where(~clean & (F.col("_n") > 0))
    flags = FRESH, LATELY, ON_TIME
    found = found.selectExpr(*places.names, *flags, f"CAST(NULL AS {NOTE}) AS {NOTED}")
    if holes is not None:  # with what is found, not joined: a key's are in one place
        kinds = f"CAST(NULL AS BOOLEAN) AS {FRESH}", f"CAST(NULL AS BOOLEAN) AS {LATELY}"
        note = "struct(_lo AS lo, _hi AS hi, _first_us AS first_us, _last_us AS last_us)"
        notes = holes.selectExpr(*places.names, *kinds, f"NULL AS {ON_TIME}", f"{note} AS {NOTED}")
        found = found.union(notes)
    told = [*(f"max({flag}) AS {flag}" for flag in flags), f"collect_list({NOTED}) AS {NOTED}"]
    of_key = found.groupBy(*places.names).agg(*map(F.expr, told)).where(f"{LATELY} IS NOT NULL")
    return of_key.selectExpr(f"{places.key_text} AS {KEY}", *flags, NOTED)


def _summed(told: DataFrame, places: Places) -> DataFrame:
    """By key what its rows say together: first by blocks of 64 places, a bit for each."""
    rest = f"pmod({AT}, {places.step}L)"
    blocks = (
        told.selectExpr("*", f"({AT} - {rest}) div {places.step}L AS _slot", f"{rest} AS _rest")
        .groupBy(*places.names, F.expr("shiftright(_slot, 6) AS _block"))
        .agg(
            F.expr(f"count({US}) AS n"),
            F.expr("bit_count(bit_or(shiftleft(1L, CAST(_slot & 63 AS INT)))) AS bits"),
            F.expr("max(_slot) AS high"),
            F.expr("min(_slot) AS low"),
            F.expr("max(_rest) - min(_rest) AS uneven"),
            F.expr("min(_rest) AS rest"),
            F.expr(f"max({AT}) AS top"),
            F.expr(f"max_by({US}, {AT}) AS last_us"),
            F.expr(f"count_if({OLD} AND {AT} IS NOT NULL) AS n_old"),
            F.expr(f"count_if({NEW}) AS n_new"),
            F.expr(f"count_if({NEW} AND {US} IS NOT NULL) AS n_late"),
            F.expr(f"count_if(NOT {OLD} AND NOT {NEW}) AS n_on_time"),
        )
    )
    whole = "sum(n) = sum(bits) AND sum(n) = max(high) - min(low) + 1"
    even = "max(uneven) = 0 AND max(rest) = min(rest)"
    return blocks.groupBy(*places.names).agg(
        F.expr(f"{whole} AND {even} AND sum(n_new) = 0 AS _full"),
        F.expr("max_by(last_us, top) AS _last_us"),
        F.expr("sum(n) AS _n"),
        F.expr(f"sum(n_old) = 0 AS {FRESH}"),
        F.expr(f"sum(n_late) > 0 AS {LATELY}"),
        F.expr(f"sum(n_on_time) AS {ON_TIME}"),
    )
