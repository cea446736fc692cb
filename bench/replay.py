"""The trace source as fast as possible."""

import statistics
import tempfile
from collections.abc import Iterator

from pyspark.sql import DataFrame

import laxity as lx
from bench.line import Line

SECONDS = 10_000  # of 500 reports: 5 M rows
ROWS_PER_BATCH = 500_000


def run() -> Iterator[Line]:
    spark = lx.session("laxity bench")
    rows = spark.readStream.format("laxity.trace").options(
        generator="laxity.sim.workload:bus", seed=1, rows_per_batch=ROWS_PER_BATCH
    )

    def discard(batch: DataFrame, _: int) -> None:
        batch.write.format("noop").mode("overwrite").save()

    with tempfile.TemporaryDirectory() as folder:
        query = rows.option("arg.seconds", SECONDS).load().writeStream.foreachBatch(discard)
        query = query.option("checkpointLocation", folder).trigger(availableNow=True)
        started = query.start()
        started.awaitTermination()
    took_ms = [p.durationMs["triggerExecution"] for p in started.recentProgress if p.numInputRows]
    rate = ROWS_PER_BATCH / statistics.median(took_ms) * 1000
    yield Line("rows a second, flood", rate, at_least=300_000)
