"""Sources as folders of Parquet files, one file a batch, so that a test cuts as it likes."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import laxity as lx
from laxity.core.merge import MergeTerms
from laxity.core.slack import SlackRule
from laxity.sim.merge import Reads, run
from laxity.spark.engine.source import Source

START_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
COLUMNS = "id bigint, area bigint, value bigint, ts timestamp, arrival timestamp"

Columns = Mapping[str, NDArray[np.int64]]


def rows(
    event_s: Sequence[float], arrival_s: Sequence[float] | None = None, first_id: int = 0
) -> dict[str, NDArray[np.int64]]:
    """Rows at seconds since the start, numbered as they stand; by default they arrive at once."""
    event_us = START_US + (np.array(event_s, np.float64) * SECOND_US).round().astype(np.int64)
    late_s = event_s if arrival_s is None else arrival_s
    arrival_us = START_US + (np.array(late_s, np.float64) * SECOND_US).round().astype(np.int64)
    ids = first_id + np.arange(event_us.size)
    return {
        "event_us": event_us,
        "arrival_us": arrival_us,
        "seq": ids,
        "id": ids,
        "area": ids % 3,
        "value": ids * 7 % 11,
    }


def write(folder: Path, n: int, columns: Columns) -> None:
    """The rows of one source in one batch."""
    folder.mkdir(parents=True, exist_ok=True)
    path, draft = folder / f"{n:03}.parquet", folder / f"_{n:03}"
    us = pa.timestamp("us", "UTC")
    data = {name: pa.array(columns[name]) for name in ("id", "area", "value")}
    times = {"ts": columns["event_us"], "arrival": columns["arrival_us"]}
    pq.write_table(pa.table(data | {k: pa.array(v, us) for k, v in times.items()}), draft)
    os.utime(draft, (1_700_000_000 + n, 1_700_000_000 + n))
    draft.rename(path)


def feed(folder: Path, columns: Columns, ends: Sequence[int]) -> Path:
    """A source whose batches end before the given rows; the last takes what is left."""
    size = columns["id"].size
    begin = 0
    for n, end in enumerate([*ends, size]):
        write(folder, n, {name: column[begin:end] for name, column in columns.items()})
        begin = end
    return folder


def lagging() -> tuple[dict[str, NDArray[np.int64]], dict[str, NDArray[np.int64]]]:
    """Two sources of equal pace; for a while the first comes five seconds late."""
    event_s = np.arange(0, 15, 0.05)
    lag_s = np.where((event_s > 4) & (event_s < 8), 5.0, 0.2)
    late_s = np.maximum.accumulate(event_s + lag_s)
    return rows(event_s.tolist(), late_s.tolist()), rows((event_s + 0.01).tolist())


def simulated(
    folder: Path, sources: Mapping[str, Columns], rule: SlackRule, every_us: int = 3 * SECOND_US
) -> Reads:
    """What the simulator reads, a batch every `every_us`; the same batches as feeds."""
    reads = run(sources, MergeTerms(rule, ties=frozenset(sources)), every_us)
    arrivals = [columns["arrival_us"] for columns in sources.values()]
    first_us = min(int(us[0]) for us in arrivals) + every_us
    ticks_us = np.arange(first_us, max(int(us[-1]) for us in arrivals) + every_us, every_us)
    for name, columns in sources.items():
        ends = np.searchsorted(columns["arrival_us"], ticks_us[:-1], side="right")
        feed(folder / name, columns, ends.tolist())
    return reads


def source(spark: SparkSession, folder: Path, **terms: Any) -> Source:
    """The source in a folder, named after it."""
    folder.mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    given = {"event_time": "ts", "arrival": "arrival", "sequence": "id"} | terms
    return lx.source(folder.name, reader.parquet(str(folder)), **given)


def written(folder: Path) -> list[dict[str, Any]]:
    """The results as they were written: batch by batch, file by file, row by row."""
    found = []
    for batch in sorted(folder.glob("batch_id=*"), key=lambda p: int(p.name.partition("=")[2])):
        for part in sorted(batch.glob("*.parquet")):
            table: Any = pq.read_table(part, partitioning=None)
            found += table.to_pylist()
    return found
