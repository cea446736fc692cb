"""Find where rows of a key are missing, on Spark.

The meaning is that of `laxity.core.holes`. Most keys have no hole, so a cheap count of all keys
first finds those that may have one (`suspects`); only their rows are then put in order.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.holes import BEGINNING, END
from laxity.core.moment import Moment
from laxity.spark.changing import changing
from laxity.spark.places import AT, KEY, US, Places

OPEN = "_holes"  # a key's open holes, as an array
FRESH = "_fresh"  # whether none of a key's rows is from the batches before
OLD = "_old"  # whether a row is


def suspects(rows: DataFrame, near: DataFrame | None, places: Places, moment: Moment) -> DataFrame:
    """The keys that may have a hole near; all that have one are among them.

    A key is above suspicion if its rows lie a step apart without a gap, reach up to the newest
    event of all, go on from rows of the batches before, and no hole left behind is `near`. A bit
    for every place tells a row that came twice from one that fills a gap.
    """
    by, step = places.by, places.step
    slot = F.expr(f"({AT} - pmod({AT}, {step}L)) div {step}L")
    rest = F.expr(f"pmod({AT}, {step}L)")
    blocks = (
        rows.select(*by, AT, US, OLD, slot.alias("_slot"), rest.alias("_rest"))
        .groupBy(*by, F.expr("shiftright(_slot, 6)").alias("_block"))
        .agg(
            F.count(F.lit(1)).alias("n"),
            F.bit_count(F.bit_or(F.expr("shiftleft(1L, CAST(_slot & 63 AS INT))"))).alias("bits"),
            F.min("_slot").alias("low"),
            F.max("_slot").alias("high"),
            F.min("_rest").alias("least"),
            F.max("_rest").alias("most"),
            F.max(AT).alias("top"),
            F.max_by(US, AT).alias("last_us"),
            F.count_if(OLD).alias("n_old"),
        )
    )
    n_places = F.max("high") - F.min("low") + 1
    keys = blocks.groupBy(*by).agg(
        ((F.sum("n") == F.sum("bits")) & (F.sum("n") == n_places)).alias("_full"),
        (F.min("least") == F.max("most")).alias("_even"),
        F.max_by("last_us", "top").alias("_last"),
        (F.sum("n_old") == 0).alias(FRESH),
    )
    stopped = F.col("_last") < changing(moment.newest_us, F.col("_last"))
    clean = F.col("_full") & F.col("_even") & ~stopped & ~F.col(FRESH)
    keys = keys.withColumn(KEY, places.key)
    if near is not None:
        left_behind = near.select(KEY).distinct().withColumn("_near", F.lit(True))
        keys = keys.join(left_behind, KEY, "left")
        clean &= F.col("_near").isNull()
    return keys.where(~F.coalesce(clean, F.lit(False))).select(KEY, FRESH)


def open_holes(
    rows: DataFrame,
    near: DataFrame | None,
    lasts: DataFrame | None,
    places: Places,
    moment: Moment,
) -> DataFrame:
    """The open holes of each key, as an array, from its rows in order.

    `near` are holes left behind, `lasts` the last row before these of keys that are fresh. What is
    before the first row is a hole if one left behind reaches up to it, or if the key is fresh.
    """
    margin_us = places.margin_us
    mark = F.struct(F.col(AT).alias("at"), F.col(US).alias("us"))
    keys = rows.groupBy(KEY).agg(
        F.sort_array(F.collect_list(F.when(F.col(AT).isNotNull(), mark))).alias("_rows"),
        F.any_value(FRESH).alias(FRESH),
    )
    first_at = F.get("_rows", F.lit(0))["at"]
    if near is None:
        left_behind = F.lit(None).cast(f"array<{_MARK}>")
    else:
        hole = F.struct("lo", "hi", "first_us")
        keys = keys.join(near.groupBy(KEY).agg(F.collect_list(hole).alias("_near")), KEY, "left")
        around = F.filter("_near", lambda h: (h["lo"] < first_at) & (first_at <= h["hi"]))
        left_behind = F.transform(around, lambda h: _mark(h["lo"], h["first_us"], listed=True))
    last_at, last_us = F.lit(BEGINNING), F.lit(BEGINNING)
    if lasts is not None:
        keys = keys.join(lasts.select(KEY, "_last"), KEY, "left")
        last_at = F.coalesce(F.col("_last")["at"], last_at)
        last_us = F.coalesce(F.col("_last")["us"] + margin_us, last_us)
    before = F.when(F.col(FRESH), F.array(_mark(last_at, last_us))).otherwise(left_behind)
    marks = F.concat(
        F.slice(F.coalesce(before, F.array().cast(f"array<{_MARK}>")), 1, 1),
        F.transform("_rows", lambda r: _mark(r["at"], r["us"] + margin_us, r["us"] - margin_us)),
        F.array(_mark(F.lit(END), F.lit(END), F.lit(END))),
    )
    keys = keys.select(KEY, marks.alias("_marks")).select(KEY, _between("_marks").alias("_between"))
    step, open_us = places.step, moment.open_us
    still = F.filter("_between", lambda h: (h["hi"] - h["lo"] > step) & (h["last_us"] >= open_us))
    return keys.select(KEY, still.alias(OPEN)).where(F.size(OPEN) > 0)


_MARK = "struct<at: bigint, after_us: bigint, before_us: bigint, listed: boolean>"


def _mark(
    at: Column, after_us: Column, before_us: Column | None = None, listed: bool = False
) -> Column:
    """A row as a hole sees it: what is missing beside it is at these times, or further off."""
    before_us = F.lit(BEGINNING) if before_us is None else before_us
    mark = F.struct(
        at.alias("at"),
        after_us.alias("after_us"),
        before_us.alias("before_us"),
        F.lit(listed).alias("listed"),
    )
    return mark.cast(_MARK)


def _between(marks: str) -> Column:
    """What lies between neighbours."""
    n_pairs = F.size(marks) - 1
    return F.zip_with(
        F.slice(marks, F.lit(1), n_pairs),
        F.slice(marks, F.lit(2), n_pairs),
        lambda a, b: F.struct(
            a["at"].alias("lo"),
            b["at"].alias("hi"),
            a["after_us"].alias("first_us"),
            b["before_us"].alias("last_us"),
            a["listed"].alias("listed"),
        ),
    )


def left_behind(places: Places, moment: Moment) -> Column:
    """Those of a key's open holes whose first neighbour is not recent any more, for the table.

    The one behind a key's last row is not among them: it ends with the key's next row.
    """
    margin_us, edge_us = places.margin_us, moment.edge_us
    return F.filter(
        OPEN,
        lambda h: ~h["listed"] & (h["first_us"] - margin_us <= edge_us) & (h["hi"] != END),
    )


def in_context(moment: Moment) -> Column:
    """Whether a row is within a span of one of its key's open holes."""
    span_us, open_us = moment.span_us, F.lit(moment.open_us)
    us = F.col(US)
    return F.exists(
        OPEN,
        lambda h: (
            (us > F.greatest(h["first_us"], open_us) - span_us) & (us < h["last_us"] + span_us)
        ),
    )


def meets(moment: Moment) -> Column:
    """Whether a row that a result depends on may be missing; False for keys without holes."""
    us, span_us = F.unix_micros("_event"), moment.span_us
    met = F.exists(OPEN, lambda h: (h["first_us"] < us + span_us) & (h["last_us"] >= us))
    return F.coalesce(met, F.lit(False))
