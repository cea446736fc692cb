"""What came of a micro-batch in one branch: its intake, and what each stage planned and found."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from laxity.core.progress import SourceState
from laxity.core.report import Decision
from laxity.core.slack import Seen
from laxity.spark.engine.batch_stats import Intake
from laxity.spark.engine.branch import Branch
from laxity.spark.engine.planned import Count, Planned, StageResult
from laxity.spark.engine.stage import Stage
from laxity.spark.rows.measure import Numbers, Riding


@dataclass(frozen=True)
class Step:
    """One stage in one batch; `n_rows` entered it, None if nobody counted them."""

    label: str
    stage: Stage
    planned: Planned
    n_rows: int | None
    result: StageResult = field(default_factory=StageResult)

    def finished(self, before: StageResult | None) -> "Step":
        """The step with its result: whatever it counts on has been counted."""
        counts = {name: _resolved(count) for name, count in self.planned.counts.items()}
        return replace(self, result=self.planned.finish(counts, before))


@dataclass(frozen=True)
class BranchResult:
    """What came of a micro-batch in one branch."""

    branch: Branch
    intake: Intake
    steps: Sequence[Step]

    def finished(self) -> "BranchResult":
        """The same once every stage is done, each told what came of the one before."""
        return replace(self, steps=list(self._finished()))

    def _finished(self) -> Iterator[Step]:
        before: StageResult | None = None
        for step in self.steps:
            done = step.finished(before)
            before = done.result
            yield done

    @property
    def decisions(self) -> list[Decision]:
        """What its stages decided, under the names they have in the query."""
        return [
            decision.model_copy(update={"stage": step.label})
            for step in self.steps
            for decision in step.result.decisions
        ]

    @property
    def last(self) -> Planned | None:
        """What its last stage planned."""
        return self.steps[-1].planned if self.steps else None

    @property
    def rows(self) -> DataFrame:
        """The results."""
        return self.last.rows if self.last else self.intake.live

    @property
    def state(self) -> SourceState:
        """How far the branch has come, as an input of another: as far as its frontier.

        It is idle when all its inputs are, since nobody is then waited for.
        """
        inputs = self.intake.progress.values()
        frontier = self.last.frontier if self.last else None
        return SourceState(
            newest_us=None if frontier is None else frontier.frontier_us,
            heard_us=max(one.heard_us for one in inputs),
            idle=all(one.idle for one in inputs),
        )

    @property
    def heard(self) -> dict[str, Seen]:
        """What its merges, and those before, saw, for the one that decides."""
        return {name: seen for step in self.steps for name, seen in step.planned.heard.items()}


def _resolved(count: Count) -> Numbers:
    return count.arrive() if isinstance(count, Riding) else count()
