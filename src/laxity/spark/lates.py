"""Late rows: which were awaited, and which are due to be replayed.

A late row is expected if it falls into an open hole of its key, or nobody knows the key. One that
does not is a dead letter: either it is there already, or the rows around it may be forgotten.
Expected rows wait until their key's trigger holds, and are then *due* together.
"""

from dataclasses import fields
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from laxity.core.holes import BEGINNING
from laxity.core.moment import Moment
from laxity.core.triggers import Trigger, Waiting, trigger_of
from laxity.errors import ConfigError
from laxity.spark.places import AT, KEY, US, Places

DUE = "_due"
REASON = "_reason"
BESIDE = "_beside"  # the neighbour behind which a row is the key's last; null if it is not
THERE = "a row is already there"
UNEXPECTED = "late, and no row is missing there"
UNNUMBERED = "late, without a number"


def judged(
    late: DataFrame,
    known: DataFrame | None,
    waiting: DataFrame | None,
    holes: DataFrame | None,
    places: Places,
    moment: Moment,
) -> DataFrame:
    """Late rows with the reason why they were not expected, null for nearly all.

    `known` are the kept rows of their keys, `waiting` rows that were late before, `holes` those
    left behind.
    """
    none = F.lit(None)
    if places.step is None:
        return late.withColumns({REASON: none.cast("string"), BESIDE: none.cast(_MARK)})
    recent = F.col(US) > moment.answered_us
    parts = [late.withColumns({"_new": F.lit(True), "_sure": F.lit(False)})]
    if known is not None:
        parts.append(known.withColumns({"_new": F.lit(False), "_sure": recent}))
    if waiting is not None:
        parts.append(waiting.withColumns({"_new": F.lit(False), "_sure": F.lit(True)}))
    among = reduce(DataFrame.unionByName, parts).withColumns(_neighbours())
    rows = among.where("_new")
    inside: Column = F.lit(False)
    if holes is not None:
        spans = holes.groupBy(KEY).agg(F.collect_list(F.struct("lo", "hi")).alias("_spans"))
        rows = rows.join(spans, KEY, "left")
        held = F.exists("_spans", lambda h: (h["lo"] < F.col(AT)) & (F.col(AT) < h["hi"]))
        inside = F.coalesce(held, inside)
    prev, after = F.col("_prev"), F.col("_next")
    gap = prev.isNull() | (after - prev["at"] > places.step)
    sure = inside | F.coalesce(prev["sure"], F.lit(False))
    reason = (
        F.when(F.col(AT).isNull(), UNNUMBERED)
        .when(F.col("_same"), THERE)
        .when(after.isNotNull() & ~(gap & sure), UNEXPECTED)
    )
    last = after.isNull() & F.col(AT).isNotNull()
    first = F.struct(F.lit(BEGINNING).alias("at"), F.lit(BEGINNING).alias("us"))
    beside = F.when(last, F.coalesce("_any", first.cast(_MARK)))
    added = ["_new", "_sure", "_prev", "_next", "_same", "_any", "_spans"]
    return rows.withColumns({REASON: reason, BESIDE: beside}).drop(*added)


_MARK = "struct<at: bigint, us: bigint>"


def _neighbours() -> dict[str, Column]:
    """What is known on either side of a row, in the order of its key."""
    up = Window.partitionBy(KEY).orderBy(AT)
    down = Window.partitionBy(KEY).orderBy(F.col(AT).desc())
    known = ~F.col("_new")
    before = up.rangeBetween(Window.unboundedPreceding, -1)
    after = down.rangeBetween(Window.unboundedPreceding, -1)
    sure = F.struct(F.col(AT).alias("at"), F.col("_sure").alias("sure"))
    mark = F.struct(F.col(AT).alias("at"), F.col(US).alias("us"))
    return {
        "_prev": F.max(F.when(known, sure)).over(before),
        "_next": F.min(F.when(known, F.col(AT))).over(after),
        "_same": F.max(known).over(up.rangeBetween(0, 0)),
        "_any": F.max(mark).over(before),
    }


def new_holes(due: DataFrame, places: Places, moment: Moment) -> DataFrame:
    """The holes before rows that are due and now the last of their key, older than recent rows."""
    margin_us = places.margin_us
    lo = F.col(BESIDE)["at"]
    first_us = F.when(lo == BEGINNING, BEGINNING).otherwise(F.col(BESIDE)["us"] + margin_us)
    last = F.col(BESIDE).isNotNull() & (F.col(US) <= moment.answered_us)
    return due.where(last & (F.col(AT) - lo > places.step)).select(
        KEY,
        lo.alias("lo"),
        F.col(AT).alias("hi"),
        first_us.alias("first_us"),
        (F.col(US) - margin_us).alias("last_us"),
    )


def triggered(lates: DataFrame, came: DataFrame, trigger: Trigger, moment: Moment) -> DataFrame:
    """The rows with `_due`: whether they are expected, and their key's trigger holds.

    `came` tells how many rows of a key came on time.
    """
    of_key = Window.partitionBy(KEY)
    expected_us = F.when(F.col(REASON).isNull(), F.col(US))
    oldest_us, frontier_us = F.min(expected_us).over(of_key), F.lit(moment.newest_us)
    waiting = Waiting(
        n_late=F.count(expected_us).over(of_key),
        n_on_time=F.coalesce("n_on_time", F.lit(0)),
        oldest_us=oldest_us,
        newest_us=F.max(expected_us).over(of_key),
        frontier_us=frontier_us,
    )
    overdue = frontier_us - oldest_us >= moment.lateness_us
    due = F.coalesce(_column(trigger(waiting)), F.lit(False)) | overdue
    joined = lates.join(came, KEY, "left").withColumn(DUE, due)
    return joined.withColumn(DUE, F.col(DUE) & F.col(REASON).isNull()).drop("n_on_time")


def came_on_time(on_time: DataFrame, keys: DataFrame) -> DataFrame:
    """How many rows of each of the keys came on time."""
    mine = on_time.select(KEY).join(keys, KEY, "left_semi")
    return mine.groupBy(KEY).agg(F.count(F.lit(1)).alias("n_on_time"))


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
