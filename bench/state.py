"""A thousand small batches leave a bounded number of files."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import laxity as lx
from bench.line import Line

N_BATCHES, ROWS_PER_BATCH = 1_000, 10
START_US = 1_700_000_000_000_000


def run() -> Iterator[Line]:
    spark = lx.session("laxity bench")
    with tempfile.TemporaryDirectory() as folder:
        n_rows = N_BATCHES * ROWS_PER_BATCH
        times = pa.array(range(START_US, START_US + n_rows), pa.timestamp("us", "UTC"))
        texts = times.cast(pa.string()).to_pylist()
        texts[::50] = [None] * len(texts[::50])  # a dead letter every fifth batch
        pq.write_table(pa.table({"ts": texts}), f"{folder}/trace.parquet")
        rows = spark.readStream.format("laxity.trace").options(
            path=f"{folder}/trace.parquet", rows_per_batch=ROWS_PER_BATCH, partitions=1
        )
        query = lx.stream(lx.source("bus", rows.load(), event_time="ts")).start(
            "bench",
            sink=lx.memory(),
            checkpoint=f"{folder}/checkpoint",
            trigger="available_now",
        )
        query.await_termination()
        n_files = sum(path.is_file() for path in Path(f"{folder}/checkpoint").rglob("*"))
        report = query.report()
        assert report is not None
        yield Line("batches", report.batch_id + 1, at_least=N_BATCHES)
        yield Line("files in the checkpoint after them", n_files, at_most=300)
