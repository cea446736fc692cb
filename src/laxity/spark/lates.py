"""Late rows: which were awaited, and which are due to be replayed.

A late row is expected if it falls into an open hole of its key, or nobody knows the key. One that
does not is a dead letter: either it is there already, or the rows around it may be forgotten.
Expected rows wait until their key's trigger holds, or their time has run out, and are then *due*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.holes import BEGINNING
from laxity.core.ledger import Fates
from laxity.core.moment import Moment
from laxity.core.report import Decision
from laxity.core.triggers import Trigger, Waiting, trigger_of
from laxity.errors import ConfigError
from laxity.spark.changing import changing
from laxity.spark.places import AT, KEY, US, Places

NEW = "_new"  # whether a row is one of them, and not one of the others of its key
WAITED = "_waited"  # whether it was late in a batch before
DUE = "_due"
REASON = "_reason"
BESIDE = "_beside"  # the neighbour of a row that is now its key's last; null for others
LATE = "_late"  # the times of a key's rows that are due
THERE = "late, and a row is already there"
UNEXPECTED = "late, and no row is missing there"
UNNUMBERED = "late, and without a number"


@dataclass(frozen=True)
class Lates:
    """The late rows of a batch and those that waited, what became of them, and how many each.

    With them are all rows kept of their keys. Rows that are due and not recent are `behind`.
    """

    rows: DataFrame
    n_due: int
    n_waiting: int
    n_dead: int
    n_behind: int

    def due(self) -> DataFrame:
        """The rows that are evaluated in this batch."""
        return self.rows.where(DUE)

    def waiting(self) -> DataFrame:
        """The rows that go on waiting."""
        return as_came(self.rows.where(_WAITS))

    def dead(self) -> DataFrame:
        """The rows that were not expected, with the reason."""
        return self.rows.where(F.col(REASON).isNotNull()).drop(NEW, WAITED, DUE, BESIDE, LATE)


def as_came(rows: DataFrame) -> DataFrame:
    """Late rows as they came, but for their places."""
    return rows.drop(NEW, WAITED, DUE, REASON, BESIDE, LATE)


_WAITS = f"{NEW} AND NOT {DUE} AND {REASON} IS NULL"


def judged(rows: DataFrame, holes: DataFrame | None, places: Places, moment: Moment) -> DataFrame:
    """Late rows with the reason why they were not expected, null for nearly all.

    `rows` are they and all that is kept of their keys, `holes` those left behind. Rows that waited
    were judged when they came.
    """
    if places.step is None:
        nothing = {REASON: F.expr("CAST(NULL AS STRING)"), BESIDE: F.expr(f"CAST(NULL AS {_MARK})")}
        return rows.withColumns(nothing)
    sure = ~F.col(NEW) & (F.col(US) > changing(moment.answered_us))
    rows = rows.withColumn("_sure", sure)
    neighbours = _neighbours(places.of_key)
    rows = rows.withColumns({name: F.expr(text) for name, text in neighbours.items()})
    inside = "false"
    if holes is not None:
        spans = holes.groupBy(KEY).agg(F.expr("collect_list(struct(lo, hi))").alias("_spans"))
        rows = rows.join(spans, KEY, "left")
        inside = f"coalesce(exists(_spans, h -> h.lo < {AT} AND {AT} < h.hi), false)"
    hole = f"({inside} OR _prev.sure) AND (_prev IS NULL OR _next - _prev.at > {places.step})"
    reason = f"""CASE WHEN {WAITED} OR NOT {NEW} THEN NULL
        WHEN {AT} IS NULL THEN '{UNNUMBERED}'
        WHEN _same THEN '{THERE}'
        WHEN _next IS NOT NULL AND NOT coalesce({hole}, false) THEN '{UNEXPECTED}' END"""
    first = f"named_struct('at', {BEGINNING}L, 'us', {BEGINNING}L)"
    beside = f"IF({NEW} AND _next IS NULL AND {AT} IS NOT NULL, coalesce(_any, {first}), NULL)"
    rows = rows.withColumns({REASON: F.expr(reason), BESIDE: F.expr(beside)})
    return rows.drop(*neighbours, "_sure", "_spans")


_MARK = "struct<at: bigint, us: bigint>"


def _neighbours(of_key: str) -> dict[str, str]:
    """What is known on either side of a row, in the order of its key."""
    past = "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    before = f"OVER ({of_key} ORDER BY {AT} {past})"
    after = f"OVER ({of_key} ORDER BY {AT} DESC {past})"
    here = f"OVER ({of_key} ORDER BY {AT} RANGE BETWEEN CURRENT ROW AND CURRENT ROW)"
    return {
        "_prev": f"max(IF({NEW}, NULL, struct({AT} AS at, _sure AS sure))) {before}",
        "_next": f"min(IF({NEW}, NULL, {AT})) {after}",
        "_same": f"max(NOT {NEW}) {here}",
        "_any": f"max(struct({AT} AS at, {US} AS us)) {before}",
    }


def new_holes(due: DataFrame, places: Places, moment: Moment) -> DataFrame:
    """The holes before rows that are due and now the last of their key, but not recent any more."""
    margin_us = places.margin_us
    last = F.col(BESIDE).isNotNull() & (F.col(US) <= changing(moment.answered_us))
    return (
        due.where(last)
        .where(f"{AT} - {BESIDE}.at > {places.step}")
        .selectExpr(
            KEY,
            f"{BESIDE}.at AS lo",
            f"{AT} AS hi",
            f"IF({BESIDE}.at = {BEGINNING}L, {BEGINNING}L, {BESIDE}.us + {margin_us}) AS first_us",
            f"{US} - {margin_us} AS last_us",
        )
    )


def triggered(
    rows: DataFrame, came: DataFrame, trigger: Trigger, places: Places, moment: Moment
) -> DataFrame:
    """The rows with `_due`: late, and their key's trigger holds or their time has run out.

    `came` tells how many rows of a key came on time. With it is told when the key's rows that are
    due happened.
    """
    expected_us = f"IF({NEW} AND {REASON} IS NULL, {US}, NULL)"
    of_key = f"OVER ({places.of_key})"
    waiting = Waiting(
        n_late=F.expr(f"count({expected_us}) {of_key}"),
        n_on_time=F.expr("coalesce(n_on_time, 0)"),
        oldest_us=F.expr(f"min({expected_us}) {of_key}"),
        newest_us=F.expr(f"max({expected_us}) {of_key}"),
        frontier_us=changing(moment.newest_us),
    )
    rows = rows.join(came, KEY, "left").withColumn(DUE, _column(trigger(waiting)))
    in_time = F.col(US) > changing(moment.open_us)
    due = F.col(NEW) & F.col(REASON).isNull() & (F.coalesce(DUE, F.lit(False)) | ~in_time)
    rows = rows.withColumn(DUE, due).drop("n_on_time")
    return rows.withColumn(LATE, F.expr(f"collect_set(IF({DUE}, {US}, NULL)) {of_key}"))


def came_on_time(on_time: DataFrame, keys: DataFrame) -> DataFrame:
    """How many rows of each of the keys came on time."""
    mine = on_time.select(KEY).join(keys, KEY, "left_semi")
    return mine.groupBy(KEY).agg(F.count(F.lit(1)).alias("n_on_time"))


def counts(moment: Moment) -> list[Column]:
    """How many rows are due, wait, and are dead."""
    behind = F.col(DUE) & (F.col(US) <= changing(moment.answered_us))
    return [
        F.count_if(DUE).alias("n_due"),
        F.count_if(F.expr(_WAITS)).alias("n_waiting"),
        F.count(REASON).alias("n_dead"),
        F.count_if(behind).alias("n_behind"),
    ]


def fates_of(seen: Mapping[str, int], lates: Lates | None) -> Fates:
    """What became of the rows of a batch, and of those that waited."""
    return Fates(
        released=seen["on_time"] + (lates.n_due if lates else 0),
        held=lates.n_waiting if lates else 0,
        late_rejected=seen["too_late"],
        dead=lates.n_dead if lates else 0,
    )


def decision(lates: Lates | None) -> Decision:
    """What is replayed, in words."""
    why = "no row was late"
    if lates is not None:
        why = f"{lates.n_due} late rows are due, {lates.n_waiting} wait, {lates.n_dead} unexpected"
    values = {"due": lates.n_due if lates else 0}
    return Decision(stage="revise", what="replay", why=why, values=values)


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
