"""The floor below a deadline: what a batch takes that has nearly nothing to do.

It is measured on batches of a row or two, with the sources, the state and the storage of the
pipeline, but neither its other stages nor its sink: so a deadline below it cannot be kept.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from laxity.contract import Contract
from laxity.spark.engine.batch_stats import packed
from laxity.spark.engine.branch import Branch
from laxity.spark.rows.wall import now_us
from laxity.spark.storage.checkpoint import Checkpoint
from laxity.spark.storage.files import Files

FOLDER = "floor"
PROBES = 4  # batches; the first ones warm Java up

Protocol = Callable[[Branch, Checkpoint], Callable[[DataFrame, int], None]]


def floor_us(plain: Branch, rows: DataFrame, files: Files, protocol: Protocol) -> int:
    """What the quickest of a few tiny batches takes, to the millisecond.

    `plain`: the query without what makes it slow. `protocol` makes what runs its batches, given a
    checkpoint.
    """
    files.delete(FOLDER)
    sources = plain.sources
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
        run = protocol(plain, held)
        names = [source.name for source in sources]
        took_us = []
        for batch_id in range(PROBES):
            few = packed(_few(rows.sparkSession, rows.schema, names), names)
            began_us = now_us()
            run(few, batch_id)
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
