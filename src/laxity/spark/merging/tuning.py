"""What a tuned query needs of the engine: one tuner, the floor below its deadline, models aside.

The floor is measured on batches of a row or two, with the sources, the state and the storage of the
pipeline, but neither its other stages nor its sink: so a deadline below it cannot be kept.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from laxity.contract import Contract
from laxity.core.estimator import FitInBackground, FitNow
from laxity.core.slack import Fixed
from laxity.core.tuned import MERGE, Shared, Tuned, refuse_below_floor
from laxity.errors import ConfigError
from laxity.spark.api.sinks import memory
from laxity.spark.engine.batch import BatchRunner, Plan
from laxity.spark.engine.batch_stats import packed
from laxity.spark.engine.branch import Branch
from laxity.spark.rows.wall import now_us
from laxity.spark.storage.checkpoint import Checkpoint
from laxity.spark.storage.files import Files

FOLDER = "floor"
PROBES = 4  # batches; the first ones warm Java up


def tuned_by(branch: Branch) -> Tuned | None:
    """The rule that all merges of a query share, if it is tuned; an error if they do not."""
    rules = [one.merge.rule.rule for one in branch.walk() if one.merge is not None]
    tuned = [rule for rule in rules if isinstance(rule, Tuned)]
    if tuned and any(rule != tuned[0] for rule in rules):
        raise ConfigError(
            "a deadline is kept by all merges of a query together: give each the same lx.Tuned"
        )
    return tuned[0] if tuned else None


def shared(branch: Branch, rule: Tuned) -> Branch:
    """The query with one tuner for all its merges; each goes by the name of its branch."""
    if not branch.before:
        return branch.with_rule(rule)
    before = {operator(one): tuple(map(operator, one.before)) for one in branch.walk()}
    tuner = rule.tuner_of(before)
    return branch.each(lambda one: one.with_rule(Shared(rule, tuner, operator(one))))


def operator(branch: Branch) -> str:
    """What a branch is called in a history."""
    return branch.name or MERGE


def check_deadline(branch: Branch, rows: DataFrame, held: Checkpoint, every_us: int) -> None:
    """Refuse a tuned query's deadline if it lies below the floor, which is measured now."""
    rule = tuned_by(branch)
    if rule is not None:
        batch_us = _batch_us(branch, rows, held.files)
        refuse_below_floor(rule.deadline, batch_us, every_us)


def _batch_us(branch: Branch, rows: DataFrame, files: Files) -> int:
    """What the quickest of a few tiny batches takes, to the millisecond."""
    files.delete(FOLDER)
    merges = branch.each(lambda one: replace(one, stages=one.stages[:1]))
    plain = merges.each(lambda one: one.with_rule(Fixed("0s")))
    sources = branch.sources
    contract = Contract(
        pipeline=FOLDER,
        sources=tuple(source.terms for source in sources),
        stages=(),
        sink="",
        delivery="",
        trigger="",
        checkpoint=files.uri,
        deadline_us=None,
    )
    held = Checkpoint(rows.sparkSession, f"{files.uri}/{FOLDER}", contract)
    try:
        runner = BatchRunner(Plan(FOLDER, plain, memory(), True, None), held)
        names = [source.name for source in sources]
        took_us = []
        for batch_id in range(PROBES):
            few = packed(_few(rows.sparkSession, rows.schema, names), names)
            began_us = now_us()
            runner(few, batch_id)
            took_us.append(now_us() - began_us)
    finally:
        held.release()
        files.delete(FOLDER)
    return min(took_us) // 1000 * 1000


def _few(spark: SparkSession, schema: StructType, names: Sequence[str]) -> DataFrame:
    """A row of every source, as they come from there, with nothing in it but its time."""
    at = spark.sql("SELECT current_timestamp()").first()
    assert at is not None
    known: dict[str, Any] = {"_event": at[0], "_arrival": at[0], "_seq": 0}
    rows = [tuple((known | {"_source": name}).get(f.name) for f in schema) for name in names]
    return spark.createDataFrame(
        rows, StructType([StructField(f.name, f.dataType) for f in schema])
    )


def fitted_in_background(branch: Branch) -> tuple[Branch, Callable[[], object]]:
    """The query, with the models of its tuner made beside the batches; how to end that."""
    rule = tuned_by(branch)
    if rule is None:
        return branch, lambda: None
    if rule.fitting is not None:
        return shared(branch, rule), lambda: None
    executor = ThreadPoolExecutor(1, thread_name_prefix="laxity-tuner")
    background = replace(rule, fitting=FitInBackground(executor, FitNow(rule.seed)))
    return shared(branch, background), partial(executor.shutdown, wait=False, cancel_futures=True)
