"""Revise results batch by batch, by evaluating the app on slices of history.

What the Spark stage does, in numpy. A batch brings the newest event from τ0 to τ1 and the edge of
what is answered from E0 to E1. Evaluated are, for every key, the results in `(E0, E1]`, and those
in `(ts − span, ts]` for each late row whose trigger holds: once, on all rows they need. Slices of a
key cannot disturb each other, because a result that is kept has all its rows. What was answered
before is found by evaluating once more without the late rows; only differences are told.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from laxity.core.holes import BEGINNING
from laxity.core.revise import Intervals, merged
from laxity.core.triggers import Trigger
from laxity.sim.retained import ON_TIME, STRAY, TOO_LATE, Retained, Rows, Terms
from laxity.sim.windows import App, Row

Name = tuple[int, int, Hashable]  # key, time and kind of a result

FINAL, TENTATIVE, REVISED, RETRACTED = "final", "tentative", "revised", "retracted"


class Answer(NamedTuple):
    """A result as it is told; a retracted one has no value."""

    key: int
    ts_us: int
    kind: Hashable
    value: Any
    status: str
    revision: int


@dataclass(frozen=True)
class Told:
    """What a batch gives: answers, rows put aside, and up to when results are final."""

    answers: list[Answer]
    too_late: Rows
    strays: Rows
    final_us: int
    n_held: int


class Slices:
    """Answers now, exact answers as late rows come."""

    def __init__(self, app: App, terms: Terms, trigger: Trigger) -> None:
        self.app, self.trigger = app, trigger
        self.history = Retained(app.shape, terms)
        self._revisions: dict[Name, int] = {}  # of results told more than once

    def batch(self, rows: Rows, *, drain: bool = False) -> Told:
        """Take in rows in any order; what is to be told.

        `drain`: the input has ended, so every result is answered, and final.
        """
        history, answered_us = self.history, self.history.watermark_us
        marks = history.arrive(rows)
        history.ended = drain and history.newest_us > BEGINNING
        before = history.rows
        late = history.take_up(history.due(self.trigger, rows.key[marks == ON_TIME]))
        answers = self._answers(answered_us, before, late)
        history.forget()
        final_us = history.final_us
        self._revisions = {n: nr for n, nr in self._revisions.items() if n[1] > final_us}
        too_late, strays = rows.take(marks == TOO_LATE), rows.take(marks == STRAY)
        return Told(answers, too_late, strays, final_us, history.n_held)

    def _answers(self, answered_us: int, before: Rows, late: Rows) -> list[Answer]:
        """What is told: results past those answered, and what late rows change in the others."""
        shape, rows = self.history.shape, self.history.rows
        watermark_us = self.history.watermark_us
        lo_us, hi_us = shape.affected(late.ts_us)
        keys = np.unique(rows.key)
        wanted = merged(
            np.concatenate([keys, late.key]),
            np.concatenate([np.full(keys.size, answered_us), lo_us]),
            np.concatenate([np.full(keys.size, watermark_us), np.minimum(hi_us, watermark_us)]),
        )
        again = merged(late.key, lo_us, np.minimum(hi_us, answered_us))
        now, told = self._evaluated(rows, wanted), self._evaluated(before, again)
        changed = [self._again(name, told[name], now.get(name)) for name in told]
        return sum(changed, self._first({n: v for n, v in now.items() if n not in told}))

    def _evaluated(self, rows: Rows, wanted: Intervals) -> dict[Name, Any]:
        """The results in these intervals, from the rows they need."""
        _, hi_us = self.history.shape.needed(wanted.lo_us, wanted.hi_us)
        slices = merged(wanted.key, wanted.lo_us, hi_us - 1)
        rows = rows.take(slices.hold(rows.key, rows.ts_us))
        rows = rows.take(np.argsort(rows.ts_us, kind="stable"))
        fed = zip(rows.ts_us.tolist(), rows.key.tolist(), rows.value, strict=True)
        results = self.app.on(Row(*row) for row in fed)
        key = np.array([result.key for result in results], np.int64)
        ts_us = np.array([result.ts_us for result in results], np.int64)
        return {
            (results[i].key, results[i].ts_us, self.app.kind(results[i].value)): results[i].value
            for i in np.flatnonzero(wanted.hold(key, ts_us)).tolist()
        }

    def _first(self, values: Mapping[Name, Any]) -> list[Answer]:
        """Results that were not there before; one that was retracted may come back."""
        key, ts_us = (np.array([name[i] for name in values], np.int64) for i in (0, 1))
        told = []
        for name, sure in zip(values, self.history.certain(key, ts_us), strict=True):
            if name in self._revisions:
                told += self._again(name, None, values[name])
            else:
                told.append(Answer(*name, values[name], FINAL if sure else TENTATIVE, 0))
        return told

    def _again(self, name: Name, before: Any, now: Any) -> list[Answer]:
        """A result that was told before: nothing if it is the same."""
        if now == before:
            return []
        self._revisions[name] = self._revisions.get(name, 0) + 1
        status = RETRACTED if now is None else REVISED
        return [Answer(*name, now, status, self._revisions[name])]

    def snapshot(self) -> dict[str, Any]:
        """The memory as JSON values; kinds and values must be such."""
        revisions = [[*name, revision] for name, revision in self._revisions.items()]
        return {"history": self.history.snapshot(), "revisions": revisions}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self.history.restore(snapshot["history"])
        revisions = snapshot["revisions"]
        self._revisions = {(key, ts, kind): revision for key, ts, kind, revision in revisions}
