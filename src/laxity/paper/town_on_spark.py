"""The alerts of a town on Spark, a day of readings a batch, by each way of dealing with late ones.

`UnsortedWait` holds every reading for as long as readings may be late and then evaluates it, the
way Spark offers for rows of any app: they wait in its state behind a watermark, a list for every
meter and hour, and go to the application by hand. `Watermark` lets the windows wait instead of the
rows, with a few numbers for each: less to hold, but only for an app that is a chain of Spark's own
windows. It is let off the second aggregate, which sees next to no rows. `UnsortedDiscard` is a
revise that accepts no late row, `SortedNoWait` the same on readings sorted beforehand.

What counts are the batches once the first readings are as old as the latest may come late: until
then who waits has only stored. A batch's time is the processing latency of its alerts: that from
the arrival of the reading that lets a window close.
"""

import os
import statistics
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.readwriter import DataStreamWriter

import laxity as lx
from laxity.paper.by_hand import ByHand
from laxity.paper.metering import FUSE_KWH, application
from laxity.paper.reprocessing import EAGER, LAZY, SORTED, WAIT, WATERMARK
from laxity.sim.workload.columns import DAY_US, START_US
from laxity.sim.workload.town import Block, Town

WARM = 3  # batches that never count
SCHEMA = "event timestamp, meter bigint, kwh double"
CONF = {  # a session of its own keeps what waits where it has room
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming"
    ".state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.maintenanceShutdownTimeout": "5s",  # not minutes, at the end
}


@dataclass(frozen=True)
class Speed:
    """How fast the readings were worked through."""

    rows: int
    rows_per_s: float
    batch_s: float


def write_days(folder: Path, blocks: Iterable[Block], of: Town) -> None:
    """The readings as files, one a day: by day of arrival, and in `sorted` by day of event.

    What comes after the last day is left out.
    """
    schema = pa.schema([("event", pa.timestamp("us", "UTC")), ("meter", "int64"), ("kwh", "f8")])
    with ExitStack() as stack:

        def writers(name: str) -> list[pq.ParquetWriter]:
            (folder / name).mkdir(parents=True)
            paths = [folder / name / f"{day:03}.parquet" for day in range(of.days)]
            return [stack.enter_context(pq.ParquetWriter(path, schema)) for path in paths]

        ways = {"arrival_us": writers("arriving"), "event_us": writers("sorted")}
        for block in blocks:
            columns = block.rows()
            table = pa.table(
                [columns["event_us"], columns["meter"], columns["kwh"]], ["event", "meter", "kwh"]
            ).cast(schema)
            for time, files in ways.items():
                day_of = (columns[time] - START_US) // DAY_US
                for day, file in enumerate(files):
                    file.write_table(table.take(np.flatnonzero(day_of == day)))
    for path in folder.glob("*/*.parquet"):
        at_s = 1_700_000_000 + int(path.stem)
        os.utime(path, (at_s, at_s))  # files are read oldest first


def speed(spark: SparkSession, how: str, folder: Path, of: Town) -> Speed:
    """How fast a way works through the files of a folder."""
    name = "sorted" if how == SORTED else "arriving"
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    readings = reader.parquet(str(folder / name))
    work = folder / how
    ways = {WAIT: _waiting, WATERMARK: _watermarked}
    if how in ways:
        times = _batches(ways[how](readings, work, of), work)
    else:
        times = _revising(readings, how, work, of)
    timed = times[max(WARM, of.max_late_days + 1) :]
    took_s = sum(batch_s for _, batch_s in timed)
    rows = sum(n_rows for n_rows, _ in times)
    return Speed(
        rows,
        round(sum(n_rows for n_rows, _ in timed) / took_s, 1),
        round(statistics.median(batch_s for _, batch_s in timed), 3),
    )


def _revising(readings: DataFrame, how: str, work: Path, of: Town) -> list[tuple[int, float]]:
    source = lx.source("meters", readings, event_time="event")
    late = how in (EAGER, LAZY)
    revised = lx.stream(source).revise(
        application(),
        by="meter",
        lateness=f"{of.max_late_days}d" if late else "0s",
        period="1h" if late else None,
        trigger=LAZY if how == LAZY else EAGER,
    )
    query = revised.start(
        "fig5",
        sink=lx.parquet(str(work / "out")),
        checkpoint=str(work / "checkpoint"),
        trigger="available_now",
    )
    query.await_termination()
    took_s = {p.batchId: _took_s(p) for p in query.spark.recentProgress}
    return [(one.rows.rows_in, took_s[one.batch_id]) for one in query.reports() if one.rows.rows_in]


def _waiting(readings: DataFrame, work: Path, of: Town) -> DataStreamWriter:
    hours = _watched(readings, of).groupBy("meter", F.window("_event", "1 hour"))
    held = hours.agg(F.expr("collect_list(struct(_event, kwh))").alias("rows"))
    rows = held.selectExpr("meter", "inline(rows)")
    return rows.writeStream.outputMode("append").foreachBatch(ByHand(work))


def _watermarked(readings: DataFrame, work: Path, of: Town) -> DataStreamWriter:
    hours = _watched(readings, of).groupBy("meter", F.window("_event", "2 hours", "1 hour"))
    used = hours.agg((F.max_by("kwh", "_event") - F.min_by("kwh", "_event")).alias("kwh"))
    wrong = used.where(f"kwh < 0 OR kwh > {FUSE_KWH}")  # an hour with one reading has used nothing
    writer = wrong.writeStream.outputMode("append")
    return writer.format("parquet").option("path", str(work / "out"))


def _watched(readings: DataFrame, of: Town) -> DataFrame:
    named = readings.withColumnRenamed("event", "_event")
    return named.withWatermark("_event", f"{of.max_late_days} days")


def _batches(writer: DataStreamWriter, work: Path) -> list[tuple[int, float]]:
    """The rows and seconds of every batch that has rows."""
    writer = writer.option("checkpointLocation", str(work / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [(p.numInputRows, _took_s(p)) for p in query.recentProgress if p.numInputRows]


def _took_s(progress: StreamingQueryProgress) -> float:
    """How long a batch took, with what Spark itself does before and after it."""
    return progress.durationMs["triggerExecution"] / 1000
