"""Revise on Spark: answer at once, and again what late rows change.

`laxity.core.revise` has the mathematics; here they become filters and joins. A batch without late
rows evaluates the app once, on its rows and those of the last span, and keeps the results between
the edge before and the edge after. Late rows that are due add the results they affect, evaluated on
slices of the history (`replay.py`); which rows the history keeps is told in `history.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

from pydantic import BaseModel, ConfigDict
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.holes import BEGINNING
from laxity.core.ledger import Fates
from laxity.core.moment import Moment
from laxity.core.report import Decision
from laxity.core.triggers import Trigger
from laxity.durations import show_us
from laxity.spark.app import App
from laxity.spark.changing import changing
from laxity.spark.history import CONTEXTS, RECENT, History, Holes
from laxity.spark.holes import OLD, OPEN, meets
from laxity.spark.intake import measured, riding
from laxity.spark.keep import kept
from laxity.spark.lates import (
    BESIDE,
    DUE,
    REASON,
    came_on_time,
    judged,
    new_holes,
    triggered,
)
from laxity.spark.latest import RETRACTED, keyed
from laxity.spark.places import KEY, US, Places, small
from laxity.spark.replay import (
    FINAL,
    REVISED,
    REVISIONS,
    TENTATIVE,
    changes,
    given_again,
    late_times,
    slices,
)
from laxity.spark.stage import Outcome, Turn

WAITING = "waiting"
N_BUCKETS = 64  # in which rows kept are counted until they expire


class ReviseMemory(BaseModel):
    """What a revise carries from batch to batch.

    `newest_us`: the newest event of all keys. `n_waiting`: late rows that wait for their trigger.
    `stock`: for each table how many rows were kept, by when the last of them expires.
    """

    model_config = ConfigDict(frozen=True)

    newest_us: int | None = None
    n_waiting: int = 0
    stock: dict[str, dict[int, int]] = {}


@dataclass(frozen=True)
class Lates:
    """The late rows of a batch and those that waited; `due` and `dead` are told in columns."""

    rows: DataFrame
    known: DataFrame | None
    n_due: int
    n_waiting: int
    n_dead: int
    n_behind: int

    @property
    def due(self) -> DataFrame:
        """Those that are evaluated in this batch."""
        return self.rows.where(DUE)


@dataclass(frozen=True)
class Revise:
    """Answers at once; evaluates again what rows up to `lateness_us` late change.

    `alone`: no stage stands before, so the intake sees the same rows.
    """

    app: App
    places: Places
    lateness_us: int
    trigger: Trigger
    alone: bool

    name = "revise"

    @property
    def terms(self) -> str:
        """How far results change, and what is kept for it."""
        span_us, step = self.app.shape.span_us, self.places.step
        if step is None:
            whole = show_us(self.lateness_us + span_us)
            keeps = f"missing rows cannot be seen, so all rows of {whole} are kept"
        else:
            every = (
                f"a row every {show_us(step)}"
                if self.places.number is None
                else (f"rows numbered by {self.places.number}")
            )
            keeps = f"{every}; kept are rows of {show_us(span_us)}, and those near missing ones"
        trigger = getattr(self.trigger, "__name__", "own")
        return (
            f"{self.app.name} by {', '.join(self.places.by)}, rows up to "
            f"{show_us(self.lateness_us)} late, trigger {trigger}; {keeps}"
        )

    def observes(self, memory: dict[str, Any]) -> Sequence[Column]:
        """How many rows are on time, late and too late."""
        if not self.alone:
            return ()
        moment = self._moment(ReviseMemory.model_validate(memory), None)
        return [
            F.count_if(F.col("_dead").isNull() & holds).alias(name)
            for name, holds in _lateness(moment).items()
        ]

    def _moment(self, memory: ReviseMemory, newest_us: int | None) -> Moment:
        before_us = BEGINNING if memory.newest_us is None else memory.newest_us
        after_us = before_us if newest_us is None else max(before_us, newest_us)
        return Moment(self.app.shape, self.lateness_us, before_us, after_us)

    def __call__(self, rows: DataFrame, turn: Turn) -> Outcome:
        """Answer what can be answered, and again what is due."""
        memory = ReviseMemory.model_validate(turn.memory)
        rows, seen = self._seen(rows, turn, memory)
        if seen is None:
            return self._nothing_new(rows, memory)
        moment = self._moment(memory, seen["newest_us"])
        placed = self.places.of(rows)
        history = History(turn.tables, turn.aside, self.places, moment)
        on_time = placed.where(F.col(US) >= changing(moment.before_us))
        lates = self._lates(placed, on_time, history, turn, seen["late"], memory.n_waiting)
        present = self._present(on_time, history, lates)
        behind = None
        if lates is not None and lates.n_behind:
            behind = lates.due.where(F.col(US) <= moment.answered_us).drop(DUE, REASON, BESIDE)
        holes = history.open_holes(present, behind)
        results = self._answers(present, holes, moment)
        if lates is not None:
            results = self._with_changes(results, lates, turn, history)
        listed = None
        if behind is not None and lates is not None and self.places.step is not None:
            listed = new_holes(lates.due, self.places, moment)
        added = history.keep(present, behind, holes, listed)
        told, answered = riding(results, _statuses())
        empty = moment.edge_us == moment.answered_us and not (lates and lates.n_due)
        fates = _fates(seen, lates)
        stock = cache(lambda: self._stocked(memory, moment, added()))
        n_holes = holes.n_holes if holes else 0
        return Outcome(
            keyed(told, self.app.naming(self.places.by)),
            memory=lambda: ReviseMemory(
                newest_us=moment.newest_us, n_waiting=fates.held, stock=stock()
            ).model_dump(mode="json"),
            fates=lambda: fates,
            numbers=lambda: (
                _numbers(moment, seen, fates, lates, n_holes, stock())
                | (dict.fromkeys(_STATUSES, 0) if empty else answered.get)
            ),
            decisions=(_decision(lates),),
            late=_too_late(rows, moment),
            dead=None if lates is None else self._dead(lates),
            empty=empty,
        )

    def _seen(
        self, rows: DataFrame, turn: Turn, memory: ReviseMemory
    ) -> tuple[DataFrame, dict[str, Any] | None]:
        """The rows, at hand, and their numbers; None if there are no rows."""
        if self.alone:
            newest = [h.newest_us for h in turn.intake.heard.values() if h.newest_us is not None]
            return rows, turn.seen | {"newest_us": max(newest)} if newest else None
        if turn.before is not None and turn.before.empty:
            return rows, None
        at_hand, let_go = kept(rows)
        turn.aside.last(let_go)
        moment = self._moment(memory, None)
        columns = [F.count_if(holds).alias(name) for name, holds in _lateness(moment).items()]
        newest_us = F.unix_micros(F.max("_event")).alias("newest_us")
        numbers = measured(at_hand, [*columns, newest_us])
        return at_hand, None if numbers["newest_us"] is None else numbers

    def _lates(
        self,
        placed: DataFrame,
        on_time: DataFrame,
        history: History,
        turn: Turn,
        n_late: int,
        n_waiting: int,
    ) -> Lates | None:
        """What became of the late rows and of those that waited; None if there are none."""
        if not n_late and not n_waiting:
            return None
        moment, us = history.moment, F.col(US)
        in_time = (us < changing(moment.before_us)) & (us >= changing(moment.accepted_us))
        late, n_lates = placed.where(in_time), n_late + n_waiting
        waiting = None
        if n_waiting and (waited := turn.tables.read(WAITING)) is not None:
            waiting = self.places.of(waited)
        keys = late.select(KEY)
        if waiting is not None:
            keys = keys.unionByName(waiting.select(KEY))
        keys = keys.distinct()
        known = history.of_keys(keys, n_lates)
        if known is not None:
            known = self._at_hand(known, turn)
        rows = judged(late, known, waiting, history.holes(), self.places, moment)
        if waiting is not None:
            rows = rows.unionByName(waiting, allowMissingColumns=True)
        came = small(came_on_time(on_time, small(keys, n_lates)), n_lates)
        rows = self._at_hand(triggered(rows, came, self.trigger, moment), turn)
        numbers = measured(rows, _counts(moment))
        lates = Lates(rows, known, **numbers)
        if lates.n_waiting or n_waiting:
            still = rows.where(~F.col(DUE) & F.col(REASON).isNull())
            turn.tables.replace(WAITING, self.places.without(still.drop(DUE, REASON, BESIDE)))
        return lates

    def _present(self, on_time: DataFrame, history: History, lates: Lates | None) -> DataFrame:
        """All rows since the last span before this batch, late ones that are due included."""
        parts = [on_time.withColumn(OLD, F.lit(False))]
        if (recent := history.recent()) is not None:
            parts.append(recent.withColumn(OLD, F.lit(True)))
        if lates is not None and lates.n_due > lates.n_behind:
            due = lates.due.where(F.col(US) > history.moment.answered_us)
            parts.append(due.drop(DUE, REASON, BESIDE).withColumn(OLD, F.lit(False)))
        return reduce(DataFrame.unionByName, parts)

    def _answers(self, present: DataFrame, holes: Holes | None, moment: Moment) -> DataFrame:
        """The results between the edges, with status."""
        results = self.app.results(self.places.without(present).drop(OLD), self.places.by)
        us = F.unix_micros("_event")
        between = (us > changing(moment.answered_us, us)) & (us <= changing(moment.edge_us, us))
        results = results.where(between)
        status: Column = F.lit(FINAL if self.places.step is not None else TENTATIVE)
        if holes is not None:
            results = results.withColumn(KEY, self.places.key)
            results = results.join(small(holes.keys, holes.n_keys), KEY, "left")
            status = F.when(meets(moment), TENTATIVE).otherwise(FINAL)
        first = {"_status": status, "_revision": F.lit(0)}
        return results.withColumns(first).drop(KEY, OPEN)

    def _with_changes(
        self, results: DataFrame, lates: Lates, turn: Turn, history: History
    ) -> DataFrame:
        """The results, and what the rows that are due have changed in older ones."""
        names, moment = self.app.naming(self.places.by), history.moment
        given = turn.tables.read(REVISIONS)
        turn.tables.expire(REVISIONS, moment.final_us + 1)
        if not lates.n_due:
            return results
        times = late_times(lates.due)
        rows = lates.due.drop(REASON, BESIDE)
        if lates.known is not None:
            rows = rows.unionByName(lates.known.withColumn(DUE, F.lit(False)))
        rows = self._at_hand(slices(rows, times, lates.n_due, moment), turn)
        changed = changes(self.app, self.places, rows, times, lates.n_due, given, moment)
        changed = self._at_hand(changed, turn)
        again = given_again(changed, names)
        us = F.unix_micros("_event")
        turn.tables.append(REVISIONS, again, bucket=us, newest=moment.answered_us)
        turn.tables.expire(REVISIONS, moment.final_us + 1)
        return results.unionByName(changed)

    def _at_hand(self, rows: DataFrame, turn: Turn) -> DataFrame:
        at_hand, let_go = kept(rows)
        turn.aside.last(let_go)
        return at_hand

    def _dead(self, lates: Lates) -> DataFrame:
        refused = lates.rows.where(F.col(REASON).isNotNull())
        return self.places.without(refused.drop(DUE, BESIDE))

    def _stocked(
        self, memory: ReviseMemory, moment: Moment, added: Mapping[str, int]
    ) -> dict[str, dict[int, int]]:
        """How many rows are kept: those of a bucket count until all of them have expired."""
        spans = {
            RECENT: (moment.newest_us, moment.edge_us),
            CONTEXTS: (moment.edge_us, moment.final_us),
        }
        stock = {}
        for table, (newest_us, floor_us) in spans.items():
            width_us = (newest_us - floor_us) // N_BUCKETS + 1
            counts = {
                bucket: n
                for bucket, n in memory.stock.get(table, {}).items()
                if (bucket + 1) * width_us > floor_us
            }
            if added.get(table):
                bucket = newest_us // width_us
                counts[bucket] = counts.get(bucket, 0) + added[table]
            stock[table] = counts
        return stock

    def _nothing_new(self, rows: DataFrame, memory: ReviseMemory) -> Outcome:
        """No row came: nothing to do, and no job to find that out."""
        moment = self._moment(memory, None)
        seen = dict.fromkeys(_lateness(moment), 0)
        fates = Fates(held=memory.n_waiting)
        results = self._answers(self.places.of(rows), None, moment).where("false")
        numbers = _numbers(moment, seen, fates, None, 0, memory.stock) | dict.fromkeys(_STATUSES, 0)
        return Outcome(
            results,
            memory=lambda: memory.model_dump(mode="json"),
            fates=lambda: fates,
            numbers=lambda: numbers,
            empty=True,
        )

    def empty_results(self, empty: DataFrame) -> DataFrame:
        """No results, with their columns."""
        moment = self._moment(ReviseMemory(), None)
        results = self._answers(self.places.of(empty).withColumn(OLD, F.lit(False)), None, moment)
        return keyed(results, self.app.naming(self.places.by))


_STATUSES: dict[str, Callable[[], Column]] = {
    "first": lambda: F.col("_revision") == 0,
    "revised": lambda: F.col("_status") == REVISED,
    "retracted": lambda: F.col("_status") == RETRACTED,
}


def _statuses() -> list[Column]:
    return [F.count_if(holds()).alias(name) for name, holds in _STATUSES.items()]


def _lateness(moment: Moment) -> dict[str, Column]:
    """What tells rows that are on time, late, and too late, each on its own."""
    us = F.unix_micros("_event")
    before_us, accepted_us = changing(moment.before_us), changing(moment.accepted_us)
    return {
        "on_time": us >= before_us,
        "late": (us < before_us) & (us >= accepted_us),
        "too_late": us < accepted_us,
    }


def _too_late(rows: DataFrame, moment: Moment) -> DataFrame:
    us = F.unix_micros("_event")
    late_by = (F.lit(moment.before_us) - us) / 1_000_000
    return rows.where(us < changing(moment.accepted_us)).withColumn("late_by", late_by)


def _counts(moment: Moment) -> list[Column]:
    due, reason = F.col(DUE), F.col(REASON)
    return [
        F.count_if(due).alias("n_due"),
        F.count_if(~due & reason.isNull()).alias("n_waiting"),
        F.count_if(reason.isNotNull()).alias("n_dead"),
        F.count_if(due & (F.col(US) <= moment.answered_us)).alias("n_behind"),
    ]


def _fates(seen: Mapping[str, Any], lates: Lates | None) -> Fates:
    return Fates(
        released=seen["on_time"] + (lates.n_due if lates else 0),
        held=lates.n_waiting if lates else 0,
        late_rejected=seen["too_late"],
        dead=lates.n_dead if lates else 0,
    )


def _numbers(
    moment: Moment,
    seen: Mapping[str, Any],
    fates: Fates,
    lates: Lates | None,
    n_holes: int,
    stock: Mapping[str, Mapping[int, int]],
) -> dict[str, Any]:
    known = moment.newest_us != BEGINNING
    return {
        "final_us": moment.final_us if known else None,
        "on_time": seen["on_time"],
        "late": seen["late"],
        "too_late": seen["too_late"],
        "due": lates.n_due if lates else 0,
        "waiting": fates.held,
        "dead": fates.dead,
        "holes": n_holes,
        "kept": sum(n for counts in stock.values() for n in counts.values()),
    }


def _decision(lates: Lates | None) -> Decision:
    why = "no row was late"
    if lates is not None:
        why = f"{lates.n_due} late rows are due, {lates.n_waiting} wait, {lates.n_dead} unexpected"
    values = {"due": lates.n_due if lates else 0}
    return Decision(stage="revise", what="replay", why=why, values=values)
