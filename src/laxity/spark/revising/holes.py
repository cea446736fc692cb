"""What is found out about each key in doubt: where rows are missing, and what becomes of its rows.

The meaning of holes is that of `laxity.core.holes`. A key's are one array, found from its rows in
order: `lo` and `hi` are the neighbours' coordinates, `first_us` and `last_us` the times in between,
`listed` those that are in the table of holes already.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.holes import BEGINNING, END
from laxity.core.moment import Moment
from laxity.spark.revising.marks import (
    AT,
    DUE,
    FRESH,
    KEY,
    LATE,
    LEAVING,
    NEW,
    NOTED,
    OLD,
    OPEN,
    US,
)
from laxity.spark.revising.places import Places, hole_before
from laxity.spark.revising.visible import fates
from laxity.spark.rows.runtime_literal import runtime_sql

N_BETWEEN = f"size(filter({OPEN}, h -> h.lo <> {BEGINNING}L AND h.hi <> {END}L))"


@dataclass(frozen=True)
class Keys:
    """What is found out about each key in doubt, one row each, about `n_keys` of them.

    What was `counted` is known once a job has read them: the `keys`, the fates of their late rows,
    the holes `between` rows, those `left` behind, which are new in the table of holes, and the rows
    that are `leaving` the recent ones.
    """

    rows: DataFrame
    n_keys: int
    counted: Callable[[], Mapping[str, int | None]]

    @cached_property
    def n(self) -> dict[str, int]:
        """How many there are."""
        return {name: number or 0 for name, number in self.counted().items()}

    @property
    def holes(self) -> DataFrame:
        """The keys with open holes, and these."""
        return self.rows.where(F.size(OPEN) > 0).select(KEY, OPEN)


def found_out(rows: DataFrame, places: Places, moment: Moment, columns: Sequence[str]) -> DataFrame:
    """For each key of the rows in doubt its open holes, its late rows' times, and their fates.

    With the holes are told the rows that are not recent any more and yet needed, in some columns.
    """
    holes = {} if places.step is None else _seen_holes(places, moment, columns)
    late = fates(moment)
    sums = holes | {LATE: f"any_value({LATE})"}
    sums |= {name: f"count_if({which})" for name, which in late.items()}
    of_key = rows.selectExpr("*", f"{is_present(moment)} AS _here").groupBy(*places.names)
    keys = of_key.agg(*(F.expr(f"{text} AS {name}") for name, text in sums.items()))
    key, others = (*places.names, f"{places.key_text} AS {KEY}"), (LATE, *late)
    if not holes:
        return keys.selectExpr(*key, *others)
    marks = f"{_marks(places.margin_us)} AS _marks", f"{_PASSED} AS _passed"
    is_open = f"h.last_us >= {runtime_sql(moment.open_us, 'h.last_us')}"
    gap = f"h.hi - {places.step} > h.lo AND {is_open}"  # from beginning to end is beyond bigint
    found = f"IF(_any, filter(concat({_BETWEEN}, _passed), h -> {gap}), array()) AS {OPEN}"
    marked = keys.selectExpr(*key, "_any", LEAVING, *marks, *others)
    holed = marked.selectExpr(*places.names, KEY, found, LEAVING, *others)
    needed = f"filter({LEAVING}, r -> {_in_context(moment)}) AS {LEAVING}"
    return holed.selectExpr(*places.names, KEY, OPEN, needed, *others)


def _seen_holes(places: Places, moment: Moment, columns: Sequence[str]) -> dict[str, str]:
    """What a key's holes are found from: its rows since the last span, and those noted, or soon so.

    What is before the first row is a hole if one left behind reaches up to it, or if the key is
    fresh; then it begins with the last row kept before. One that ends before it has rows behind it
    among these, that a row in it would need.
    """
    mark, row = f"struct({AT} AS at, {US} AS us)", f"struct({', '.join(columns)})"
    before = f"{AT} IS NOT NULL AND NOT _here AND ({OLD} OR {DUE})"
    leaves = f"_here AND {US} <= {runtime_sql(moment.watermark_us, US)}"
    new = f"collect_list({hole_before(places, moment)})"
    near = f"h.last_us > {runtime_sql(moment.answered_us - moment.span_us, 'h.last_us')}"
    return {
        "_rows": f"sort_array(collect_list(IF(_here AND {AT} IS NOT NULL, {mark}, NULL)))",
        "_last": f"max(IF({FRESH} AND {before}, {mark}, NULL))",
        "_near": f"filter(concat(any_value({NOTED}), {new}), h -> {near})",
        LEAVING: f"collect_list(IF({leaves}, {row}, NULL))",
        FRESH: f"any_value({FRESH})",
        "_any": "bool_or(_here)",
    }


def is_present(moment: Moment) -> str:
    """Which of the rows in doubt are of the last span before this batch or since, as SQL."""
    return f"{US} > {runtime_sql(moment.answered_us, US)} AND (NOT {NEW} OR {DUE})"


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
    filter(coalesce(_near, array()), h -> h.hi < coalesce(get(_rows, 0).at, h.hi + 1)),
    h -> named_struct(
        'lo', h.lo, 'hi', h.hi, 'first_us', h.first_us, 'last_us', h.last_us, 'listed', true
    )
)"""


def left_behind(places: Places, moment: Moment) -> str:
    """Those of a key's open holes whose first neighbour is not recent any more, as SQL.

    The one behind a key's last row is not among them: it ends with the key's next row.
    """
    behind = f"h.first_us - {places.margin_us} <= {runtime_sql(moment.watermark_us, 'h.first_us')}"
    return f"filter({OPEN}, h -> NOT h.listed AND {behind} AND h.hi <> {END}L)"


def _in_context(moment: Moment) -> str:
    """Whether a row `r` is within a span of one of its key's open holes, as SQL."""
    us, open_us = "unix_micros(r._event)", runtime_sql(moment.open_us, "h.first_us")
    after = f"{us} > greatest(h.first_us, {open_us}) - {moment.span_us}"
    return f"exists({OPEN}, h -> {after} AND {us} < h.last_us + {moment.span_us})"


def meets(moment: Moment) -> Column:
    """Whether a row that a result depends on may be missing; False for keys without holes."""
    us = "unix_micros(_event)"
    met = f"exists({OPEN}, h -> h.first_us < {us} + {moment.span_us} AND h.last_us >= {us})"
    return F.expr(f"coalesce({met}, false)")
