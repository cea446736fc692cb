"""Start a stream as a query."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from laxity.contract import Contract, StageTerms
from laxity.core.tuned import refuse_below_floor
from laxity.durations import Duration, duration_us, show_us
from laxity.errors import ConfigError
from laxity.spark.api.floor import FOLDER, floor_us
from laxity.spark.api.query import Query, Running
from laxity.spark.api.sinks import memory
from laxity.spark.engine.batch import BatchRunner, Plan
from laxity.spark.engine.batch_stats import packed
from laxity.spark.engine.branch import Branch
from laxity.spark.engine.sink import OwnedSink, Sink
from laxity.spark.jvm.class_cache import remember
from laxity.spark.merging.tuning import fitted_in_background, tuned_by, without_slack
from laxity.spark.storage.checkpoint import Checkpoint
from laxity.spark.storage.files import is_local

# how Spark writes what it notes of a query in its checkpoint
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
PLAIN = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
PROCESSING = "processingTime"
AVAILABLE_NOW: Literal["available_now"] = "available_now"


@dataclass(frozen=True)
class Launch:
    """What a stream has come to: its branches, the rows of its sources, the results' columns."""

    branch: Branch
    rows: DataFrame
    schema: StructType
    deadline_us: int | None

    def __call__(
        self,
        name: str,
        sink: Sink,
        checkpoint: str,
        trigger: Duration | Literal["available_now"] | None,
        drain: bool,
    ) -> Query:
        """Start it; the effective contract is printed."""
        interval, every_us, shown = _trigger(trigger)
        if drain and interval is not None:
            raise ConfigError(
                "drain=True lets everything out at the end of a run, so it needs "
                'trigger="available_now"; a live query is drained by query.drain()'
            )
        shown += ", everything let out" if drain else ""
        if "batch_id" in self.schema.names:
            raise ConfigError("results are stored by batch_id: rename your column of that name")
        contract = self._contract(name, sink, checkpoint, shown)
        spark = self.rows.sparkSession
        remember(spark)
        held = Checkpoint(spark, checkpoint, contract)
        end: Callable[[], object] = _nothing
        try:
            if interval is not None:
                self._check_deadline(held, every_us)
            branch, end = fitted_in_background(self.branch)
            owned = OwnedSink(sink, held.check)
            owned.open(spark, held.identity.id, held.last_id)
            dated = "_arrival" in self.schema.names
            runner = BatchRunner(Plan(name, branch, owned, dated, self.deadline_us), held)
            print(contract, file=sys.stderr)  # noqa: T201
            begin = partial(self._query, runner, name, f"{held.files.uri}/spark")
            query = begin({"availableNow": True} if interval is None else {PROCESSING: interval})
        except BaseException:
            end()
            held.release()
            raise
        once = partial(begin, {"once": True})
        running = Running(runner, held, once, interval is None, end)
        return Query(contract, query, running, drain=drain)

    def _check_deadline(self, held: Checkpoint, every_us: int) -> None:
        """Refuse a tuned query's deadline if it lies below the floor, which is measured now."""
        rule = tuned_by(self.branch)
        if rule is not None:
            plain = without_slack(self.branch)
            batch_us = floor_us(plain, self.rows, held.files, _into_memory)
            refuse_below_floor(rule.deadline, batch_us, every_us)

    def _contract(self, name: str, sink: Sink, checkpoint: str, trigger: str) -> Contract:
        staged = [
            (one.label(stage.name), stage) for one in self.branch.walk() for stage in one.stages
        ]
        return Contract(
            pipeline=name,
            sources=tuple(source.terms for source in self.branch.sources),
            stages=tuple(StageTerms(name=label, terms=stage.terms) for label, stage in staged),
            sink=str(sink),
            delivery=sink.delivery,
            trigger=trigger,
            checkpoint=checkpoint,
            deadline_us=self.deadline_us,
            promises=tuple(promise for _, stage in staged for promise in stage.promises),
        )

    def _query(
        self, runner: BatchRunner, name: str, checkpoint: str, trigger: dict[str, Any]
    ) -> StreamingQuery:
        prepare(self.rows.sparkSession.conf, checkpoint)
        rows = packed(self.rows, [source.name for source in self.branch.sources])
        writer = rows.writeStream.queryName(name).foreachBatch(runner)
        writer = writer.option("checkpointLocation", checkpoint)
        return writer.trigger(**trigger).start()


def _into_memory(branch: Branch, held: Checkpoint) -> BatchRunner:
    """The batch protocol of a branch whose results nobody wants."""
    return BatchRunner(Plan(FOLDER, branch, memory(), True, None), held)


def prepare(conf: RuntimeConfig, checkpoint: str) -> None:
    """What a query needs of a session, whoever made it."""
    # without it one source that cannot end (the heartbeat) makes one batch of everything
    conf.set("spark.sql.streaming.triggerAvailableNowWrapper.enabled", "true")
    # Spark's own way for its logs takes five times as long on a local disk, three times a batch
    if is_local(checkpoint) and conf.get(MANAGER, None) is None:
        conf.set(MANAGER, PLAIN)
    elif not is_local(checkpoint) and conf.get(MANAGER, None) == PLAIN:
        conf.unset(MANAGER)


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
