"""A query as branches: inputs, and the stages their rows go through.

Most queries have one. A merge may take in what other merges made (`Stream.named`): each of those is
a branch of its own, and its results are an input of the next.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Union

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from laxity.core.progress import SourceState
from laxity.core.report import Decision
from laxity.core.slack import Seen
from laxity.spark.engine.batch_stats import Intake
from laxity.spark.engine.planned import Count, Planned, StageResult
from laxity.spark.engine.source import NO_TIMESTAMP, Source
from laxity.spark.engine.stage import Stage
from laxity.spark.rows.columns import CAME, OWN, quoted
from laxity.spark.rows.measure import Numbers, Riding
from laxity.spark.rows.runtime_literal import runtime_literal

_INTAKE = ("_source", "_event", "_arrival", "_seq", "_dead", "_raw")


@dataclass(frozen=True)
class Branch:
    """Inputs and stages; one with a name is an input of another branch."""

    inputs: tuple[Union[Source, "Branch"], ...]
    stages: tuple[Stage, ...]
    name: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs in the order of their rank."""
        return tuple(one.name for one in self.inputs)

    @cached_property
    def own_sources(self) -> tuple[Source, ...]:
        """The inputs that are sources."""
        return tuple(one for one in self.inputs if isinstance(one, Source))

    @cached_property
    def before(self) -> tuple["Branch", ...]:
        """The inputs that are branches."""
        return tuple(one for one in self.inputs if isinstance(one, Branch))

    @property
    def sources(self) -> tuple[Source, ...]:
        """All sources of the branch and of those before it."""
        return tuple(source for branch in self.walk() for source in branch.own_sources)

    def walk(self) -> Iterator["Branch"]:
        """All branches, each after those before it."""
        for branch in self.before:
            yield from branch.walk()
        yield self

    def label(self, name: str) -> str:
        """What a stage or table of this branch is called in the query."""
        return f"{self.name}-{name}" if self.name else name

    def each(self, change: Callable[["Branch"], "Branch"]) -> "Branch":
        """The same with a change made to it and to all branches before it."""
        inputs = (one.each(change) if isinstance(one, Branch) else one for one in self.inputs)
        return replace(change(self), inputs=tuple(inputs))


def made_columns(schema: StructType) -> list[str]:
    """The columns of a branch's results that are not Laxity's."""
    return [name for name in schema.names if name not in OWN]


def sources_rows(branch: Branch, rows: DataFrame) -> DataFrame:
    """Of the rows of all sources those of the branch's own, with its columns."""
    names = [source.name for source in branch.own_sources]
    own_rows = rows.where(F.col("_source").isin(names))
    if len(branch.inputs) == 1:
        return own_rows.select(*_INTAKE, f"{names[0]}.*")
    return own_rows.select(*_INTAKE, *names)


def made_rows(name: str, results: DataFrame) -> DataFrame:
    """What a branch made, as rows of a source of that name.

    Those of equal time are ordered by a hash, of the source and the sequence if they still have
    them, else of the row.
    """
    user = list(map(quoted, made_columns(results.schema)))
    known = [F.col("_source"), F.col("_seq")] if "_seq" in results.columns else user
    dead = F.when(F.col("_event").isNull(), NO_TIMESTAMP)
    raw = F.when(dead.isNotNull(), F.to_json(F.struct(*user), {"ignoreNullFields": "false"}))
    return results.select(
        F.lit(name).alias("_source"),
        "_event",
        "_arrival",
        F.xxhash64(*known).alias("_seq"),
        dead.alias("_dead"),
        raw.alias("_raw"),
        F.struct(*user).alias(name),
    )


def together(own: DataFrame, made: Sequence[DataFrame], began_us: int) -> DataFrame:
    """The rows of all inputs of a branch, with when they came to it.

    A source's row came when it arrived, what was made in this batch when that began.
    """
    began = F.timestamp_micros(
        runtime_literal(began_us, F.coalesce(F.unix_micros("_event"), F.lit(0)))
    )
    parts = [own.withColumn(CAME, F.col("_arrival"))]
    parts += [rows.withColumn(CAME, began) for rows in made]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


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
