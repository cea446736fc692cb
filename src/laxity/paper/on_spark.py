"""The traffic join on Spark with a given number of cores, in a process of its own.

    python -m laxity.paper.on_spark CORES SECONDS RATE AREAS SEED

A session's cores cannot be changed, so each number of cores gets a process; where the system can
do that, all of it, Java's compiler and collector included, has no more than those cores. The input
is written to files first and read as fast as possible; the first batches do not count.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

import laxity as lx
from laxity.core.report import Report
from laxity.sim.workload.columns import Columns
from laxity.sim.workload.traffic import bus, scats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_PER_FILE = 200_000
WARM = 2  # batches


class Speed(BaseModel):
    """What was done per second."""

    rows_per_s: float
    comparisons_per_s: float


def measured(cores: int, seconds: int, rate_per_s: float, areas: int, seed: int) -> Speed:
    """How fast a session with so many cores is."""
    arguments = [str(x) for x in (cores, seconds, rate_per_s, areas, seed)]
    command = [sys.executable, "-m", "laxity.paper.on_spark", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise lx.EngineError(f"the run with {cores} cores failed: {done.stderr[-2000:]}")
    return Speed.model_validate_json(done.stdout)


def main(cores: str, seconds: str, rate_per_s: str, areas: str, seed: str) -> None:
    """Run the join, print its speed as JSON."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    with tempfile.TemporaryDirectory() as folder:
        for make in (bus, scats):
            columns = make(
                int(seed),
                seconds=float(seconds),
                rate_per_s=float(rate_per_s),
                areas=int(areas),
                delay="constant:0s",
            )
            _write(Path(folder) / make.__name__, columns)
        reports = _run(lx.session("laxity paper", cores=cores), Path(folder))
    timed = [report for report in reports[WARM:] if report.rows.rows_in]
    took_s = sum(report.duration_s for report in timed)
    n_rows = sum(report.rows.rows_in for report in timed)
    n_compared = sum(report.stages["join"]["compared"] for report in timed)
    speed = Speed(rows_per_s=n_rows / took_s, comparisons_per_s=n_compared / took_s)
    sys.stdout.write(speed.model_dump_json())


def _run(spark: "SparkSession", folder: Path) -> list[Report]:
    sources = []
    for name in ("bus", "scats"):
        schema = spark.read.parquet(str(folder / name)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        rows = reader.parquet(str(folder / name))
        sources.append(lx.source(name, rows, event_time="event", arrival="arrival"))
    joined = lx.merge(*sources, slack="5s").join(
        "bus", "scats", on="area", within="5s", when="bus.delay_s > 120 AND scats.flow > 40"
    )
    query = joined.start(
        "fig9",
        sink=lx.parquet(str(folder / "out")),
        checkpoint=str(folder / "checkpoint"),
        trigger="available_now",
    )
    query.await_termination()
    return query.reports()


def _write(folder: Path, columns: Columns) -> None:
    """A source's rows as files, one a batch."""
    us = pa.timestamp("us", "UTC")
    times = {key: pa.array(columns.pop(f"{key}_us"), us) for key in ("event", "arrival")}
    table = pa.table(times | columns)
    folder.mkdir()
    for n, start in enumerate(range(0, table.num_rows, ROWS_PER_FILE)):
        path = folder / f"{n:04}.parquet"
        pq.write_table(table.slice(start, ROWS_PER_FILE), path)
        os.utime(path, (1_700_000_000 + n, 1_700_000_000 + n))  # files are read oldest first


if __name__ == "__main__":
    main(*sys.argv[1:])
