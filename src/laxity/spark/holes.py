"""Find where rows of a key are missing, on Spark.

The meaning is that of `laxity.core.holes`. Most keys have no hole, so a cheap count of all keys
first finds those that may have one (`suspects`); only their rows are then put in order. A key's
holes are one array: `lo` and `hi` are the neighbours' coordinates, `first_us` and `last_us` the
times in between, `listed` those that are in the table of holes already.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.holes import BEGINNING, END
from laxity.core.moment import Moment
from laxity.spark.changing import changing, changing_in
from laxity.spark.places import AT, KEY, US, Places

OPEN = "_holes"  # a key's open holes
FRESH = "_fresh"  # whether none of a key's rows is from the batches before
OLD = "_old"  # whether a row is
DOUBT = "_doubt"  # whether a row makes its key suspect, whatever the others say

_NEAR = "array<struct<lo: bigint, hi: bigint, first_us: bigint, last_us: bigint>>"
_LAST = "struct<at: bigint, us: bigint>"


def suspects(rows: DataFrame, near: DataFrame | None, places: Places, moment: Moment) -> DataFrame:
    """The keys that may have a hole near; all that have one are among them.

    A key is above suspicion if its rows lie a step apart without a gap, reach up to the newest
    event of all, go on from rows of the batches before, none of them is in `_doubt`, and no hole
    left behind is `near`. A bit for every place tells a row that came twice from one that fills a
    gap.
    """
    rest = f"pmod({AT}, {places.step}L)"
    by = [f"`{name}`" for name in places.by]
    told = rows.selectExpr(*by, AT, US, OLD, DOUBT)
    if near is not None:
        nothing = [f"CAST(NULL AS BIGINT) AS {AT}", f"CAST(NULL AS BIGINT) AS {US}"]
        marks = near.selectExpr(f"{KEY}.*", *nothing, f"false AS {OLD}", f"true AS {DOUBT}")
        told = told.union(marks)
    blocks = (
        told.selectExpr("*", f"({AT} - {rest}) div {places.step}L AS _slot", f"{rest} AS _rest")
        .groupBy(*by, F.expr("shiftright(_slot, 6)").alias("_block"))
        .agg(
            F.expr(f"count({US})").alias("n"),
            F.expr("bit_count(bit_or(shiftleft(1L, CAST(_slot & 63 AS INT))))").alias("bits"),
            F.expr("max(_slot)").alias("high"),
            F.expr("min(_slot)").alias("low"),
            F.expr("max(_rest) - min(_rest)").alias("uneven"),
            F.expr("min(_rest)").alias("rest"),
            F.expr(f"max({AT})").alias("top"),
            F.expr(f"max_by({US}, {AT})").alias("last_us"),
            F.expr(f"count_if({OLD})").alias("n_old"),
            F.expr(f"bool_or({DOUBT})").alias("doubt"),
        )
    )
    whole = "sum(n) = sum(bits) AND sum(n) = max(high) - min(low) + 1"
    even = "max(uneven) = 0 AND max(rest) = min(rest)"
    keys = blocks.groupBy(*by).agg(
        F.expr(f"{whole} AND {even} AND NOT bool_or(doubt)").alias("_full"),
        F.expr("max_by(last_us, top)").alias("_last_us"),
        F.expr("sum(n)").alias("_n"),
        F.expr("sum(n_old) = 0").alias(FRESH),
    )
    goes_on = F.col("_last_us") >= changing(moment.newest_us, F.col("_last_us"))
    clean = F.coalesce(F.col("_full") & goes_on & ~F.col(FRESH), F.lit(False))
    return keys.where(~clean & (F.col("_n") > 0)).select(places.key.alias(KEY), FRESH)


def open_holes(
    rows: DataFrame, near: DataFrame | None, lasts: DataFrame | None, places: Places, moment: Moment
) -> DataFrame:
    """The open holes of each key, from its rows in order; keys without any are left out.

    `near` are holes left behind, `lasts` the last row before these of keys that are fresh. What is
    before the first row is a hole if one left behind reaches up to it, or if the key is fresh. One
    that ends before it has rows behind it among these, that a row in it would need.
    """
    mark = f"IF({AT} IS NULL, NULL, struct({AT} AS at, {US} AS us))"
    keys = rows.groupBy(KEY).agg(
        F.expr(f"sort_array(collect_list({mark}))").alias("_rows"),
        F.expr(f"any_value({FRESH})").alias(FRESH),
    )
    if near is None:
        keys = keys.withColumn("_near", F.expr(f"CAST(NULL AS {_NEAR})"))
    else:
        around = near.groupBy(KEY).agg(F.expr("collect_list(struct(lo, hi, first_us, last_us))"))
        keys = keys.join(around.toDF(KEY, "_near"), KEY, "left")
    if lasts is None:
        keys = keys.withColumn("_last", F.expr(f"CAST(NULL AS {_LAST})"))
    else:
        keys = keys.join(lasts, KEY, "left")
    marked = keys.selectExpr(KEY, f"{_marks(places.margin_us)} AS _marks", f"{_PASSED} AS _passed")
    is_open = f"h.last_us >= {changing_in(moment.open_us, 'h.last_us')}"
    gap = f"h.hi - h.lo > {places.step} AND {is_open}"
    holes = f"filter(concat({_BETWEEN}, _passed), h -> {gap}) AS {OPEN}"
    return marked.selectExpr(KEY, holes).where(F.size(OPEN) > 0)


def _marks(margin_us: int) -> str:
    """A key's rows as holes see them: beside a row others are missing at these times, or beyond.

    In front is the neighbour of the first row, if there is a hole between them.
    """

    def mark(at: str, after_us: str, before_us: str, listed: str = "false") -> str:
        return (
            f"named_struct('at', {at}, 'after_us', {after_us}, 'before_us', {before_us}, "
            f"'listed', {listed})"
        )

    begin, end, first_at = f"{BEGINNING}L", f"{END}L", "get(_rows, 0).at"
    last_us = f"coalesce(_last.us + {margin_us}, {begin})"
    fresh = f"array({mark(f'coalesce(_last.at, {begin})', last_us, begin)})"
    around = f"filter(_near, h -> h.lo < {first_at} AND {first_at} <= h.hi)"
    known = f"transform({around}, h -> {mark('h.lo', 'h.first_us', begin, 'true')})"
    before = f"coalesce(IF({FRESH}, {fresh}, slice({known}, 1, 1)), array())"
    each = mark("r.at", f"r.us + {margin_us}", f"r.us - {margin_us}")
    return f"concat({before}, transform(_rows, r -> {each}), array({mark(end, end, end)}))"


_BETWEEN = """zip_with(
    slice(_marks, 1, size(_marks) - 1),
    slice(_marks, 2, size(_marks) - 1),
    (a, b) -> named_struct(
        'lo', a.at, 'hi', b.at, 'first_us', a.after_us, 'last_us', b.before_us, 'listed', a.listed
    )
)"""

_PASSED = """transform(
    filter(coalesce(_near, array()), h -> h.hi < get(_rows, 0).at),
    h -> named_struct(
        'lo', h.lo, 'hi', h.hi, 'first_us', h.first_us, 'last_us', h.last_us, 'listed', true
    )
)"""


def left_behind(places: Places, moment: Moment) -> Column:
    """Those of a key's open holes whose first neighbour is not recent any more, for the table.

    The one behind a key's last row is not among them: it ends with the key's next row.
    """
    behind = f"h.first_us - {places.margin_us} <= {changing_in(moment.edge_us, 'h.first_us')}"
    return F.expr(f"filter({OPEN}, h -> NOT h.listed AND {behind} AND h.hi <> {END}L)")


def n_between() -> Column:
    """How many of a key's open holes are between rows."""
    return F.expr(f"size(filter({OPEN}, h -> h.lo <> {BEGINNING}L AND h.hi <> {END}L))")


def in_context(moment: Moment) -> Column:
    """Whether a row is within a span of one of its key's open holes."""
    open_us = changing_in(moment.open_us, "h.first_us")
    after = f"{US} > greatest(h.first_us, {open_us}) - {moment.span_us}"
    return F.expr(f"exists({OPEN}, h -> {after} AND {US} < h.last_us + {moment.span_us})")


def meets(moment: Moment) -> Column:
    """Whether a row that a result depends on may be missing; False for keys without holes."""
    us = "unix_micros(_event)"
    met = f"exists({OPEN}, h -> h.first_us < {us} + {moment.span_us} AND h.last_us >= {us})"
    return F.expr(f"coalesce({met}, false)")
