"""A query as branches: inputs, and the stages their rows go through.

Most queries have one. A merge may take in what other merges made (`Stream.named`): each of those is
a branch of its own, and its results are an input of the next.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Union

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from laxity.spark.engine.source import NO_TIMESTAMP, Source
from laxity.spark.engine.stage import Stage
from laxity.spark.rows.columns import CAME, OWN, quoted
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
    mine = rows.where(F.col("_source").isin(names))
    if len(branch.inputs) == 1:
        return mine.select(*_INTAKE, f"{names[0]}.*")
    return mine.select(*_INTAKE, *names)


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
