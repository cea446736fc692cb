"""What a tuned merge needs of the engine: the floor below its deadline, and models fitted aside.

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
from laxity.core.estimator import FitAside, FitNow
from laxity.core.slack import Fixed
from laxity.core.tuned import Tuned, refuse_below_floor
from laxity.spark.batch import BatchRunner, Plan
from laxity.spark.checkpoint import Checkpoint
from laxity.spark.files import Files
from laxity.spark.merge import Merge
from laxity.spark.sinks import memory
from laxity.spark.sources import Source
from laxity.spark.wall import now_us

FOLDER = "floor"
PROBES = 4  # batches; the first ones warm Java up


def check_deadline(
    merge: Merge, sources: tuple[Source, ...], rows: DataFrame, held: Checkpoint, every_us: int
) -> None:
    """Refuse a tuned merge's deadline if it lies below the floor, which is measured now."""
    if isinstance(merge.rule.rule, Tuned):
        batch_us = _batch_us(merge, sources, rows, held.files)
        refuse_below_floor(merge.rule.rule.deadline, batch_us, every_us)


def _batch_us(merge: Merge, sources: tuple[Source, ...], rows: DataFrame, files: Files) -> int:
    """What the quickest of a few tiny batches takes, to the millisecond."""
    files.delete(FOLDER)
    plain = replace(merge, rule=replace(merge.rule, rule=Fixed("0s")))
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
        runner = BatchRunner(Plan(FOLDER, sources, (plain,), memory(), True, None), held)
        names = [source.name for source in sources]
        took_us = []
        for batch_id in range(PROBES):
            few = _few(rows.sparkSession, rows.schema, names)
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


def fitted_aside(merge: Merge) -> tuple[Merge, Callable[[], object]]:
    """The same merge, with the models of its tuner made beside the batches; how to end that."""
    rule = merge.rule.rule
    if not isinstance(rule, Tuned) or rule.fitting is not None:
        return merge, lambda: None
    executor = ThreadPoolExecutor(1, thread_name_prefix="laxity-tuner")
    aside = replace(rule, fitting=FitAside(executor, FitNow(rule.seed)))
    ended = partial(executor.shutdown, wait=False, cancel_futures=True)
    return replace(merge, rule=replace(merge.rule, rule=aside)), ended
