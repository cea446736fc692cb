"""A stream: sources and stages, immutable, until it is started.

A stream of one source has the user's columns beside Laxity's (`_source`, `_event`, `_arrival`,
`_seq`); a stream of several has one struct column per source, null where the row is another's.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from laxity.contract import Contract, StageTerms
from laxity.core.merge import MergeTerms
from laxity.core.slack import Fixed, SlackRule
from laxity.core.triggers import Trigger
from laxity.core.tuned import Tuned
from laxity.durations import Duration, duration_us, show_us
from laxity.errors import ConfigError
from laxity.spark.app import App
from laxity.spark.batch import BatchRunner, Plan
from laxity.spark.checkpoint import Checkpoint
from laxity.spark.join import Join
from laxity.spark.lates import checked_trigger
from laxity.spark.merge import Merge
from laxity.spark.names import remember
from laxity.spark.places import places_in
from laxity.spark.query import Query
from laxity.spark.revise import Revise
from laxity.spark.sinks import Sink
from laxity.spark.sources import Source, union
from laxity.spark.stage import Apply, Stage
from laxity.spark.tuning import check_deadline, fitted_aside
from laxity.spark.used import used_by

AVAILABLE_NOW: Literal["available_now"] = "available_now"


@dataclass(frozen=True)
class Stream:
    """Rows on their way; every method gives a new stream."""

    sources: tuple[Source, ...]
    rows: DataFrame
    schema: StructType
    stages: tuple[Stage, ...] = ()
    deadline_us: int | None = None

    def apply(self, fn: Callable[[DataFrame], DataFrame]) -> "Stream":
        """Add any function of a batch's rows; it is tried on an empty batch at once."""
        stage = Apply(fn, position=len(self.stages) + 1)
        try:
            result = fn(self._empty())
        except Exception as error:
            raise ConfigError(
                f"apply({stage.terms}) fails on the stream's columns "
                f"({', '.join(self.schema.names)}): {error}"
            ) from error
        if not isinstance(result, DataFrame):
            raise ConfigError(
                f"apply({stage.terms}) must give a DataFrame, got {type(result).__name__}"
            )
        return replace(self, stages=(*self.stages, stage), schema=result.schema)

    def join(
        self,
        left: str,
        right: str,
        *,
        on: str | Sequence[str],
        within: Duration,
        when: str = "true",
    ) -> "Stream":
        """Pair the rows of two sources of a merge, in a sliding window.

        `on`: the column or columns, of both sources, that must be equal. `within`: how far apart
        in event time. `when`: a condition in SQL, like `"bus.delay > 120 AND scats.flow > 40"`.
        Each pair comes once, with the columns of `on`, a struct for either source, `_event` and
        `_arrival` of the later row, and `_read`, how the second of them was read.
        """
        if not self.stages or not isinstance(self.stages[-1], Merge):
            raise ConfigError("join takes rows as a merge reads them: call it right after lx.merge")
        keys = (on,) if isinstance(on, str) else tuple(on)
        self._check_sides(left, right, keys)
        names = tuple(source.name for source in self.sources)
        stage = Join(left, right, keys, duration_us(within, "within"), when, names)
        try:
            result = stage.among(self._empty())
        except AnalysisException as error:
            raise ConfigError(f"join: when {when!r} does not fit the columns: {error}") from error
        return replace(self, stages=(*self.stages, stage), schema=result.schema)

    def revise(
        self,
        app: App,
        *,
        by: str | Sequence[str],
        lateness: Duration,
        period: Duration | None = None,
        sequence: str | None = None,
        trigger: str | Trigger = "eager",
    ) -> "Stream":
        """Answer at once, and again what late rows change, until a result is exact.

        `by`: the column or columns that name a key. `lateness`: how late a row may be; later ones
        are rejected, with `late_by`. `period`: how often each key sends a row; or `sequence`: the
        column that numbers its rows. Either tells where rows are missing, so that only rows near
        those are kept; with neither all rows within the lateness are. `trigger`: when late rows
        are replayed, `"eager"` (at once), `"lazy"` (with the key's next row on time) or a function
        of `Waiting`.

        Results carry `_status` (`final`, `tentative`, `revised`, `retracted`) and `_revision`;
        `lx.latest` gives the newest of each.
        """
        if any(isinstance(stage, Revise) for stage in self.stages):
            raise ConfigError("a stream can be revised once: results change, rows do not")
        keys = (by,) if isinstance(by, str) else tuple(by)
        places = places_in(self.schema, keys, period, sequence)
        lateness_us = duration_us(lateness, "lateness")
        app.check(self._empty(), keys)
        alone, used = not self.stages, used_by(app, self._empty(), places.columns)
        stage = Revise(app, places, used, lateness_us, checked_trigger(trigger), alone)
        schema = stage.empty_results(self._empty()).schema
        return replace(self, stages=(*self.stages, stage), schema=schema)

    def _check_sides(self, left: str, right: str, keys: Sequence[str]) -> None:
        names = [source.name for source in self.sources]
        if left == right or not {left, right} <= set(names):
            raise ConfigError(
                f"join pairs two different sources of the merge ({', '.join(names)}); "
                f"got {left} and {right}"
            )
        if not keys:
            raise ConfigError("join needs at least one column in on=")
        for key in keys:
            kinds = [_field(self.schema, side, key) for side in (left, right)]
            if kinds[0] != kinds[1]:
                shown = " and ".join(kind.simpleString() for kind in kinds)
                raise ConfigError(f"join: column {key} has two types, {shown}: cast one")
            if key in names or key.startswith("_"):
                raise ConfigError(
                    f"join: {key} is taken as a name of the result; rename the column"
                )

    def _empty(self) -> DataFrame:
        return self.rows.sparkSession.createDataFrame([], self.schema)

    def start(
        self,
        name: str,
        *,
        sink: Sink,
        checkpoint: str,
        trigger: Duration | Literal["available_now"] | None = None,
    ) -> Query:
        """Start the stream as a query.

        `trigger`: a duration between batches, `"available_now"` to work through what there is
        and end, or None for as fast as possible. The effective contract is printed.
        """
        interval, every_us, shown = _trigger(trigger)
        if "batch_id" in self.schema.names:
            raise ConfigError("results are stored by batch_id: rename your column of that name")
        contract = Contract(
            pipeline=name,
            sources=tuple(source.terms for source in self.sources),
            stages=tuple(StageTerms(name=stage.name, terms=stage.terms) for stage in self.stages),
            sink=str(sink),
            delivery=sink.delivery,
            trigger=shown,
            checkpoint=str(checkpoint),
            deadline_us=self.deadline_us,
        )
        spark = self.rows.sparkSession
        remember(spark._jvm)
        held = Checkpoint(spark, str(checkpoint), contract)
        stages = self.stages
        end: Callable[[], object] = _nothing
        try:
            if stages and isinstance(merge := stages[0], Merge):
                if interval is not None:
                    check_deadline(merge, self.sources, self.rows, held, every_us)
                merge, end = fitted_aside(merge)
                stages = (merge, *stages[1:])
            sink.open(spark, held.identity.id, held.last_id)
            plan = Plan(
                name,
                self.sources,
                stages,
                sink,
                "_arrival" in self.schema.names,
                self.deadline_us,
            )
            runner = BatchRunner(plan, held)
            print(contract, file=sys.stderr)  # noqa: T201
            # without it one source that cannot end (the heartbeat) makes one batch of everything
            spark.conf.set("spark.sql.streaming.triggerAvailableNowWrapper.enabled", "true")
            writer = self.rows.writeStream.queryName(name).foreachBatch(runner)
            writer = writer.option("checkpointLocation", f"{held.files.uri}/spark")
            if interval is None:
                started = writer.trigger(availableNow=True).start()
            else:
                started = writer.trigger(processingTime=interval).start()
        except BaseException:
            end()
            held.release()
            raise
        return Query(contract, started, runner, held, end)


def stream(*sources: Source, deadline: Duration | None = None) -> Stream:
    """One stream of one or more sources, in no particular order.

    `deadline`: how long after its arrival a row's result should be out; every report says whether
    it was kept. Nothing is done to keep it: for that, `merge` with a tuned slack.
    """
    rows = union(sources)
    schema = StructType([f for f in rows.schema if f.name not in ("_dead", "_raw")])
    deadline_us = None if deadline is None else duration_us(deadline, "deadline")
    return Stream(tuple(sources), rows, schema, deadline_us=deadline_us)


def merge(
    *sources: Source,
    slack: SlackRule | Duration | None,
    hold_at_most: Duration | None = None,
    deadline: Duration | None = None,
) -> Stream:
    """The rows of several sources as one stream in order, none waiting past its slack.

    `slack`: how far the newest event of any source may be ahead of a row that waits for a slower
    source: a duration, or a rule (`Tuned`, `Fixed`, `MaxDelay`, `Tcp`, `Quantile`); None waits for
    every source, however long. `hold_at_most`: how long a row is held by the clock on the wall,
    should event time stand still; what its deadline leaves for `Tuned`. `deadline`: as for
    `stream`; with `Tuned` it is that of the rule, which is tuned to keep it.

    Released rows carry `_read`: `ready` (in order), `slack` (early, a slower source may still send
    something before it) or `late` (behind a row released before). Late rows are never dropped.
    """
    rule = Fixed(slack) if slack is None or isinstance(slack, Duration) else slack
    if not hasattr(rule, "next"):
        raise ConfigError(f"slack must be a duration, a slack rule or None; got {slack!r}")
    if isinstance(rule, Tuned):
        if deadline is not None and duration_us(deadline, "deadline") != rule.tuner.deadline_us:
            raise ConfigError(
                f"deadline {deadline} is not that of the tuned slack, {rule.deadline}: state one"
            )
        deadline = rule.deadline
    plain = stream(*sources, deadline=deadline)
    terms = MergeTerms(
        rule,
        ties=frozenset(source.name for source in sources if not source.terms.unique_times),
        hold_at_most_us=None if hold_at_most is None else duration_us(hold_at_most, "hold_at_most"),
    )
    stage = Merge(tuple(source.name for source in sources), terms)
    return replace(plain, stages=(stage,), schema=plain.schema.add("_read", "string"))


def _field(schema: StructType, source: str, column: str) -> DataType:
    """The type of a source's column."""
    fields = schema[source].dataType
    assert isinstance(fields, StructType)
    if column not in fields.names:
        there = ", ".join(fields.names)
        raise ConfigError(f"join: source {source} has no column {column}; there are {there}")
    return fields[column].dataType


def _trigger(given: Duration | None) -> tuple[str | None, int, str]:
    """The interval as Spark writes it, None for what is available now; in us; for the contract."""
    if given is None:
        return "0 seconds", 0, "as fast as possible, at least every second"
    if given == AVAILABLE_NOW:
        return None, 0, "what is available now, then end"
    us = duration_us(given, "trigger")
    return f"{us // 1000} milliseconds", us, f"every {show_us(us)}"


def _nothing() -> None:
    pass
