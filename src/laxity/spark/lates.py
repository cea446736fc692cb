"""Late rows: which were awaited, and which are due to be replayed.

A late row is expected if it falls into an open hole of its key, or nobody knows the key. One that
does not is a dead letter: either it is there already, or the rows around it may be forgotten.
Expected rows wait until their key's trigger holds, or their time has run out, and are then *due*.
"""

from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.holes import BEGINNING
from laxity.core.moment import Moment
from laxity.core.triggers import Trigger, Waiting, trigger_of
from laxity.errors import ConfigError
from laxity.spark.places import AT, KEY, US, Places

DUE = "_due"
WAITED = "_waited"  # whether a row was late in a batch before
REASON = "_reason"
BESIDE = "_beside"  # the neighbour of a row that is now its key's last; null for others
THERE = "late, and a row is already there"
UNEXPECTED = "late, and no row is missing there"
UNNUMBERED = "late, and without a number"


@dataclass(frozen=True)
class Lates:
    """The late rows of a batch and those that waited, what became of them, and how many each.

    `known` are the rows kept of their keys. Rows that are due and not recent any more are `behind`.
    """

    rows: DataFrame
    known: DataFrame | None
    n_due: int
    n_waiting: int
    n_dead: int
    n_behind: int

    def due(self) -> DataFrame:
        """The rows that are evaluated in this batch."""
        return self.rows.where(DUE)

    def waiting(self) -> DataFrame:
        """The rows that go on waiting."""
        return as_came(self.rows.where(~F.col(DUE) & F.col(REASON).isNull()))

    def dead(self) -> DataFrame:
        """The rows that were not expected, with the reason."""
        return self.rows.where(F.col(REASON).isNotNull()).drop(DUE, WAITED, BESIDE)


def as_came(rows: DataFrame) -> DataFrame:
    """Late rows as they came, but for their places."""
    return rows.drop(DUE, WAITED, REASON, BESIDE)


def judged(
    late: DataFrame,
    known: DataFrame | None,
    holes: DataFrame | None,
    places: Places,
    moment: Moment,
) -> DataFrame:
    """Late rows with the reason why they were not expected, null for nearly all.

    `known` are the kept rows of their keys, `holes` those left behind. Rows that waited were judged
    when they came.
    """
    if places.step is None:
        nothing = {REASON: F.expr("CAST(NULL AS STRING)"), BESIDE: F.expr(f"CAST(NULL AS {_MARK})")}
        return late.withColumns(nothing)
    rows = late.withColumns({"_new": F.lit(True), "_sure": F.lit(False)})
    if known is not None:
        sure = F.expr(f"{US} > {moment.answered_us}")
        old = known.withColumns({WAITED: F.lit(False), "_new": F.lit(False), "_sure": sure})
        rows = rows.unionByName(old)
    rows = rows.withColumns({name: F.expr(text) for name, text in _NEIGHBOURS.items()})
    rows = rows.where("_new")
    inside = "false"
    if holes is not None:
        spans = holes.groupBy(KEY).agg(F.expr("collect_list(struct(lo, hi))").alias("_spans"))
        rows = rows.join(spans, KEY, "left")
        inside = f"coalesce(exists(_spans, h -> h.lo < {AT} AND {AT} < h.hi), false)"
    hole = f"({inside} OR _prev.sure) AND (_prev IS NULL OR _next - _prev.at > {places.step})"
    reason = f"""CASE WHEN {WAITED} THEN NULL
        WHEN {AT} IS NULL THEN '{UNNUMBERED}'
        WHEN _same THEN '{THERE}'
        WHEN _next IS NOT NULL AND NOT coalesce({hole}, false) THEN '{UNEXPECTED}' END"""
    first = f"named_struct('at', {BEGINNING}L, 'us', {BEGINNING}L)"
    beside = f"IF(_next IS NULL AND {AT} IS NOT NULL, coalesce(_any, {first}), NULL)"
    rows = rows.withColumns({REASON: F.expr(reason), BESIDE: F.expr(beside)})
    return rows.drop(*_NEIGHBOURS, "_new", "_sure", "_spans")


_MARK = "struct<at: bigint, us: bigint>"
_BEFORE = (
    f"OVER (PARTITION BY {KEY} ORDER BY {AT} RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
)
_AFTER = (
    f"OVER (PARTITION BY {KEY} ORDER BY {AT} DESC "
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
)
_NEIGHBOURS = {
    "_prev": f"max(IF(_new, NULL, struct({AT} AS at, _sure AS sure))) {_BEFORE}",
    "_next": f"min(IF(_new, NULL, {AT})) {_AFTER}",
    "_same": f"max(NOT _new) OVER (PARTITION BY {KEY} ORDER BY {AT} "
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW)",
    "_any": f"max(struct({AT} AS at, {US} AS us)) {_BEFORE}",
}


def new_holes(due: DataFrame, places: Places, moment: Moment) -> DataFrame:
    """The holes before rows that are due and now the last of their key, but not recent any more."""
    margin_us = places.margin_us
    last = f"{BESIDE} IS NOT NULL AND {US} <= {moment.answered_us}"
    return due.where(f"{last} AND {AT} - {BESIDE}.at > {places.step}").selectExpr(
        KEY,
        f"{BESIDE}.at AS lo",
        f"{AT} AS hi",
        f"IF({BESIDE}.at = {BEGINNING}L, {BEGINNING}L, {BESIDE}.us + {margin_us}) AS first_us",
        f"{US} - {margin_us} AS last_us",
    )


def triggered(lates: DataFrame, came: DataFrame, trigger: Trigger, moment: Moment) -> DataFrame:
    """The rows with `_due`: expected, and their key's trigger holds or their time has run out.

    `came` tells how many rows of a key came on time.
    """
    expected_us = f"IF({REASON} IS NULL, {US}, NULL)"
    of_key = f"OVER (PARTITION BY {KEY})"
    waiting = Waiting(
        n_late=F.expr(f"count({expected_us}) {of_key}"),
        n_on_time=F.expr("coalesce(n_on_time, 0)"),
        oldest_us=F.expr(f"min({expected_us}) {of_key}"),
        newest_us=F.expr(f"max({expected_us}) {of_key}"),
        frontier_us=F.lit(moment.newest_us),
    )
    rows = lates.join(came, KEY, "left").withColumn(DUE, _column(trigger(waiting)))
    due = f"{REASON} IS NULL AND (coalesce({DUE}, false) OR {US} <= {moment.open_us})"
    return rows.withColumn(DUE, F.expr(due)).drop("n_on_time")


def came_on_time(on_time: DataFrame, keys: DataFrame) -> DataFrame:
    """How many rows of each of the keys came on time."""
    mine = on_time.select(KEY).join(keys, KEY, "left_semi")
    return mine.groupBy(KEY).agg(F.count(F.lit(1)).alias("n_on_time"))


def counts(moment: Moment) -> list[Column]:
    """How many rows are due, wait, and are dead."""
    said = {
        "n_due": DUE,
        "n_waiting": f"NOT {DUE} AND {REASON} IS NULL",
        "n_dead": f"{REASON} IS NOT NULL",
        "n_behind": f"{DUE} AND {US} <= {moment.answered_us}",
    }
    return [F.expr(f"count_if({holds})").alias(name) for name, holds in said.items()]


def checked_trigger(given: str | Trigger) -> Trigger:
    """A trigger by name, or the user's own, tried on columns."""
    trigger = trigger_of(given)
    try:
        answer = trigger(Waiting(*(F.col(field.name) for field in fields(Waiting))))
    except Exception as error:
        raise ConfigError(f"trigger {given} fails on columns: {error}") from error
    if not isinstance(answer, bool | Column):
        raise ConfigError(f"trigger {given} must give a condition, got {answer!r}")
    return trigger


def _column(answer: object) -> Column:
    return answer if isinstance(answer, Column) else F.lit(answer)
