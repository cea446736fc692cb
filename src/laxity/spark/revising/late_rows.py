"""Late rows: which were awaited, and which are due to be replayed.

A late row is expected if it falls into an open hole of its key, or nobody knows the key. One that
does not is a dead letter: either it is there already, or the rows around it may be forgotten.
Expected rows wait until their key's trigger holds, or their time has run out, and are then *due*.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.holes import BEGINNING
from laxity.core.ledger import Fates
from laxity.core.moment import Moment
from laxity.core.report import Decision
from laxity.core.triggers import Trigger, Waiting, trigger_of
from laxity.errors import ConfigError
from laxity.spark.revising.marks import (
    AT,
    BESIDE,
    DUE,
    LATE,
    LATELY,
    NEW,
    NOTED,
    OF_KEY,
    OLD,
    ON_TIME,
    REASON,
    US,
    WAITED,
    WAITS,
)
from laxity.spark.revising.places import Places, hole_before
from laxity.spark.revising.visible import SuspectRows
from laxity.spark.rows.runtime_literal import runtime_literal, runtime_sql

THERE = "late, and a row is already there"
UNEXPECTED = "late, and no row is missing there"
UNNUMBERED = "late, and without a number"


@dataclass(frozen=True)
class Counts:
    """How many late rows there are."""

    due: int
    waiting: int
    dead: int
    behind: int


@dataclass(frozen=True)
class LateRows:
    """The rows of keys in doubt, what became of the late ones, and how many that are.

    Rows that are due and not recent are `behind`. What was `counted` is known once a job has read
    all keys.
    """

    suspect_rows: SuspectRows
    moment: Moment
    counted: Callable[[], Mapping[str, int]]

    @cached_property
    def n(self) -> Counts:
        """How many late rows are due, wait, and are dead."""
        counted = self.counted()
        return Counts(**{field.name: counted[field.name] for field in fields(Counts)})

    def due(self) -> DataFrame:
        """The rows that are evaluated in this batch."""
        return self.suspect_rows.rows.where(DUE)

    @cached_property
    def recent(self) -> DataFrame:
        """Those that are due, and recent."""
        return as_came(self.due().where(F.col(US) > runtime_literal(self.moment.answered_us)))

    def behind(self) -> DataFrame:
        """Those that are due, and too old to be recent."""
        return as_came(self.due().where(F.col(US) <= runtime_literal(self.moment.answered_us)))

    def waiting(self) -> DataFrame:
        """The rows that go on waiting."""
        return as_came(self.suspect_rows.rows.where(WAITS))

    def dead(self) -> DataFrame:
        """The rows that were not expected, with the reason."""
        return self.suspect_rows.rows.where(F.col(REASON).isNotNull()).drop(*_OURS - {REASON})


_OURS = {OLD, NEW, WAITED, DUE, REASON, BESIDE, LATE, *OF_KEY}


def as_came(rows: DataFrame) -> DataFrame:
    """Rows in doubt as they came, but for their places."""
    return rows.drop(*_OURS)


def undisputed(rows: DataFrame) -> DataFrame:
    """Rows in doubt of which none is late."""
    return rows.withColumns(
        nothing() | {DUE: F.lit(False), LATE: F.expr("CAST(array() AS array<bigint>)")}
    )


def settled(rows: DataFrame, trigger: Trigger, places: Places, moment: Moment) -> DataFrame:
    """Rows in doubt, late ones judged and triggered; for keys without any that costs nothing."""
    late = triggered(judged(rows.where(LATELY), places, moment), trigger, places, moment)
    return late.unionByName(undisputed(rows.where(f"NOT {LATELY}")))


def judged(rows: DataFrame, places: Places, moment: Moment) -> DataFrame:
    """Rows in doubt, late ones with the reason why they were not expected, null for nearly all.

    Rows that came on time do not count, they are no neighbours yet. Rows that waited were judged
    when they came.
    """
    if places.step is None:
        return rows.withColumns(nothing())
    neighbours = _neighbours(places.of_key, runtime_sql(moment.answered_us, US))
    rows = rows.withColumns({name: F.expr(text) for name, text in neighbours.items()})
    inside = f"coalesce(exists({NOTED}, h -> h.lo < {AT} AND {AT} < h.hi), false)"
    hole = f"({inside} OR _prev.sure) AND (_prev IS NULL OR _next - _prev.at > {places.step})"
    reason = f"""CASE WHEN {WAITED} OR NOT {NEW} THEN NULL
        WHEN {AT} IS NULL THEN '{UNNUMBERED}'
        WHEN _same THEN '{THERE}'
        WHEN _next IS NOT NULL AND NOT coalesce({hole}, false) THEN '{UNEXPECTED}' END"""
    first = f"named_struct('at', {BEGINNING}L, 'us', {BEGINNING}L)"
    beside = f"IF({NEW} AND _next IS NULL AND {AT} IS NOT NULL, coalesce(_any, {first}), NULL)"
    rows = rows.withColumns({REASON: F.expr(reason), BESIDE: F.expr(beside)})
    return rows.drop(*neighbours)


def nothing() -> dict[str, Column]:
    """No reason, and no neighbour."""
    mark = "struct<at: bigint, us: bigint>"
    return {REASON: F.expr("CAST(NULL AS STRING)"), BESIDE: F.expr(f"CAST(NULL AS {mark})")}


def _neighbours(of_key: str, answered_us: str) -> dict[str, str]:
    """What is known on either side of a row, in the order of its key.

    Rows without a number are sorted before all others, and are nobody's neighbours.
    """
    past = "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    before = f"OVER ({of_key} ORDER BY {AT} {past})"
    after = f"OVER ({of_key} ORDER BY {AT} DESC {past})"
    here = f"OVER ({of_key} ORDER BY {AT} RANGE BETWEEN CURRENT ROW AND CURRENT ROW)"
    placed, sure = f"{AT} IS NOT NULL", f"{US} > {answered_us} AS sure"
    there = f"{placed} AND ({OLD} OR {NEW})"
    return {
        "_prev": f"max(IF({placed} AND {OLD}, struct({AT} AS at, {sure}), NULL)) {before}",
        "_next": f"min(IF({OLD}, {AT}, NULL)) {after}",
        "_same": f"max({OLD}) {here}",
        "_any": f"max(IF({there}, struct({AT} AS at, {US} AS us), NULL)) {before}",
    }


def new_holes(due: DataFrame, places: Places, moment: Moment) -> DataFrame:
    """The holes before rows that are due and now the last of their key, but not recent any more."""
    holes = due.selectExpr(*places.names, f"{hole_before(places, moment)} AS h")
    columns = (f"h.{name} AS _{name}" for name in ("lo", "hi", "first_us", "last_us"))
    return holes.where(f"h.hi - h.lo > {places.step}").selectExpr(*places.names, *columns)


def triggered(rows: DataFrame, trigger: Trigger, places: Places, moment: Moment) -> DataFrame:
    """The rows with `_due`: late, and their key's trigger holds or their time has run out.

    With it is told when the key's rows that are due happened.
    """
    expected_us = f"IF({NEW} AND {REASON} IS NULL, {US}, NULL)"
    of_key = f"OVER ({places.of_key})"
    waiting = Waiting(
        n_late=F.expr(f"count({expected_us}) {of_key}"),
        n_on_time=F.col(ON_TIME),
        oldest_us=F.expr(f"min({expected_us}) {of_key}"),
        newest_us=F.expr(f"max({expected_us}) {of_key}"),
        frontier_us=runtime_literal(moment.newest_us),
    )
    rows = rows.withColumn(DUE, _column(trigger(waiting)))
    in_time = F.col(US) > runtime_literal(moment.open_us)
    due = F.col(NEW) & F.col(REASON).isNull() & (F.coalesce(DUE, F.lit(False)) | ~in_time)
    rows = rows.withColumn(DUE, due)
    return rows.withColumn(LATE, F.expr(f"collect_set(IF({DUE}, {US}, NULL)) {of_key}"))


def fates_of(seen: Mapping[str, int], late_rows: LateRows | None) -> Fates:
    """What became of the rows of a batch, and of those that waited."""
    return Fates(
        released=seen["on_time"] + (late_rows.n.due if late_rows else 0),
        held=late_rows.n.waiting if late_rows else 0,
        late_rejected=seen["too_late"],
        dead=late_rows.n.dead if late_rows else 0,
    )


def decision(late_rows: LateRows | None) -> Decision:
    """What is replayed, in words."""
    why = "no row was late"
    if late_rows is not None:
        n = late_rows.n
        why = f"{n.due} late rows are due, {n.waiting} wait, {n.dead} unexpected"
    values = {"due": late_rows.n.due if late_rows else 0}
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
