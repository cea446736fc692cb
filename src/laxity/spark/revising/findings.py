"""What a revise found in a batch, in numbers: for its state, the ledger and the report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from laxity.core.holes import BEGINNING
from laxity.core.ledger import Fates
from laxity.core.moment import Moment, ReviseState
from laxity.spark.revising.holes import Keys
from laxity.spark.revising.late_rows import LateRows, fates_of
from laxity.spark.rows.results import RETRACTED, REVISED, TENTATIVE

NO_RESULTS = {"first": 0, "tentative": 0, "revised": 0, "retracted": 0}


@dataclass(frozen=True)
class Findings:
    """What a batch brought, and what is missing."""

    moment: Moment
    seen: Mapping[str, int]
    late_rows: LateRows | None
    keys: Keys | None

    @property
    def no_results(self) -> bool:
        """Whether there is nothing to answer, now or again."""
        return self.moment.watermark_us == self.moment.answered_us and not self._n_due

    @property
    def fates(self) -> Fates:
        """What became of the rows."""
        return fates_of(self.seen, self.late_rows)

    @property
    def _n_due(self) -> int:
        return self.late_rows.n.due if self.late_rows else 0

    def state(self, before: ReviseState, added: Mapping[str, Mapping[int, int]]) -> ReviseState:
        """What to remember; `added` are the rows that each table got, by bucket."""
        newest_us, floor_us = self.moment.left
        return ReviseState(
            newest_us=newest_us,
            floor_us=floor_us,
            n_waiting=self.fates.held,
            n_doubted=self.keys.n["keys"] if self.keys else 0,
            stock={} if self.moment.drains else self.moment.stocked(before.stock, added),
        )

    def numbers(self, state: ReviseState) -> dict[str, Any]:
        """What the report tells, but for the results."""
        n_holes = self.keys.n["between"] if self.keys else 0
        counts = {**self.seen, "holes": n_holes, "due": self._n_due}
        return numbers_of(self.moment, state, counts, self.fates)


def numbers_of(
    moment: Moment, state: ReviseState, counts: Mapping[str, int], fates: Fates
) -> dict[str, Any]:
    """The numbers of a report, but for the results."""
    numbers = {name: counts[name] for name in ("on_time", "late", "too_late", "due", "holes")}
    final_us = None if moment.newest_us == BEGINNING else moment.final_us
    kept = {"waiting": fates.held, "dead": fates.dead, "kept": state.n_kept}
    return {"final_us": final_us} | numbers | kept


def by_status() -> list[Column]:
    """How many results are given for the first time, not as final, again, and taken back."""
    return [
        F.expr("count_if(_revision = 0) AS first"),
        F.expr(f"count_if(_status = '{TENTATIVE}') AS tentative"),
        F.expr(f"count_if(_status = '{REVISED}') AS revised"),
        F.expr(f"count_if(_status = '{RETRACTED}') AS retracted"),
    ]
