"""A stream: sources and stages, immutable, until it is started.

A stream of one source has the user's columns beside Laxity's (`_source`, `_event`, `_arrival`,
`_seq`); a stream of several has one struct column per source, null where the row is another's.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from laxity.contract import Contract, StageTerms
from laxity.durations import Duration, duration_us, show_us
from laxity.errors import ConfigError
from laxity.spark.batch import BatchRunner, Plan
from laxity.spark.checkpoint import Checkpoint
from laxity.spark.query import Query
from laxity.spark.sinks import Sink
from laxity.spark.sources import Source, union
from laxity.spark.stage import Apply, Stage

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
        empty = self.rows.sparkSession.createDataFrame([], self.schema)
        try:
            result = fn(empty)
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
        interval, shown = _trigger(trigger)
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
        held = Checkpoint(spark, str(checkpoint), contract)
        try:
            sink.open(spark, held.identity.id, held.last_id)
            plan = Plan(
                name,
                self.sources,
                self.stages,
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
            held.release()
            raise
        return Query(contract, started, runner, held)


def stream(*sources: Source, deadline: Duration | None = None) -> Stream:
    """One stream of one or more sources, in no particular order.

    `deadline`: how long after its arrival a row's result should be out; every report says whether
    it was kept. Nothing is done to keep it: for that, `merge` with a tuned slack.
    """
    rows = union(sources)
    schema = StructType([f for f in rows.schema if f.name not in ("_dead", "_raw")])
    deadline_us = None if deadline is None else duration_us(deadline, "deadline")
    return Stream(tuple(sources), rows, schema, deadline_us=deadline_us)


def _trigger(given: Duration | None) -> tuple[str | None, str]:
    """The interval as Spark writes it, None for what is available now; and for the contract."""
    if given is None:
        return "0 seconds", "as fast as possible, at least every second"
    if given == AVAILABLE_NOW:
        return None, "what is available now, then end"
    us = duration_us(given, "trigger")
    return f"{us // 1000} milliseconds", f"every {show_us(us)}"
