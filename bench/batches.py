"""Run a stream over all there is, and tell how long its batches took."""

from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import laxity as lx


def bare_ms(writer: DataStreamWriter, work: Path) -> list[int]:
    """Of a query of bare Spark."""
    query = writer.option("checkpointLocation", f"{work}/checkpoint")
    started = query.trigger(availableNow=True).start()
    started.awaitTermination()
    return _took_ms(started, at_least=1)


def our_ms(stream: lx.Stream, work: Path) -> list[int]:
    """Of a stream of ours; its heartbeat is a row of its own."""
    query = stream.start(
        "bench",
        sink=lx.parquet(f"{work}/out"),
        checkpoint=f"{work}/checkpoint",
        trigger="available_now",
    )
    query.await_termination()
    return _took_ms(query.spark, at_least=2)


def _took_ms(query: StreamingQuery, at_least: int) -> list[int]:
    progress = [p for p in query.recentProgress if p.numInputRows >= at_least]
    return [p.durationMs["triggerExecution"] for p in progress]
