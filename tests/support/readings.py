"""Meter readings as folders of Parquet files, one file a batch, and what an app makes of them."""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.spark.api.stream import Stream

HOUR_US = 3_600_000_000
START_US = 472_000 * HOUR_US  # a whole hour
COLUMNS = "meter bigint, n bigint, kwh bigint, ts timestamp"

Reading = tuple[int, int, int]  # meter, hour, counter


def write(folder: Path, n: int, readings: Iterable[Reading]) -> None:
    """The readings of one batch; a meter's readings are numbered by their hours."""
    write_rows(folder, n, [(m, hour, kwh, START_US + hour * HOUR_US) for m, hour, kwh in readings])


def write_rows(folder: Path, n: int, rows: Sequence[tuple[int, int, int, int]]) -> None:
    """Meter, number, counter and time of the rows of one batch; files are read oldest first."""
    folder.mkdir(parents=True, exist_ok=True)
    table = {
        "meter": pa.array([row[0] for row in rows], pa.int64()),
        "n": pa.array([row[1] for row in rows], pa.int64()),
        "kwh": pa.array([row[2] for row in rows], pa.int64()),
        "ts": pa.array([row[3] for row in rows], pa.timestamp("us", "UTC")),
    }
    draft = folder / f"_{n:03}"
    pq.write_table(pa.table(table), draft)
    os.utime(draft, (1_700_000_000 + n, 1_700_000_000 + n))
    draft.rename(folder / f"{n:03}.parquet")


def stream(spark: SparkSession, folder: Path, name: str = "meters") -> Stream:
    """The readings in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    return lx.stream(lx.source(name, reader.parquet(str(folder)), event_time="ts"))


def totals(rows: DataFrame) -> DataFrame:
    """Two aggregates in series: sums of two hours, and how many and how large over three."""
    sums = rows.groupBy("meter", F.window("_event", "2 hours", "1 hour")).agg(
        F.sum("kwh").alias("kwh")
    )
    return sums.groupBy("meter", F.window("window.start", "3 hours", "1 hour")).agg(
        F.sum("kwh").alias("kwh"), F.count(F.lit(1)).alias("n")
    )


TOTALS = [("2h", "1h"), ("3h", "1h")]
SPAN = 5


def plain_totals(readings: Iterable[Reading]) -> dict[tuple[int, int], tuple[int, int]]:
    """The same of all readings at once, by meter and hour; only what is answered by their end."""
    given = list(readings)
    sums: dict[tuple[int, int], int] = defaultdict(int)
    for meter, hour, kwh in given:
        for edge in (hour - 1, hour):
            sums[meter, edge] += kwh
    results: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (meter, hour), total in sums.items():
        for edge in (hour - 2, hour - 1, hour):
            results[meter, edge].append(total)
    last = max(hour for _, hour, _ in given) - SPAN
    return {name: (sum(v), len(v)) for name, v in results.items() if name[1] <= last}


def hour_of(when: datetime) -> int:
    """The hour of a result's time; without a zone it is in UTC."""
    us = int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()) * 1_000_000
    return (us - START_US) // HOUR_US


def newest(results: Iterable[dict[str, Any]]) -> dict[tuple[int, int], tuple[int, int]]:
    """The last revision of every result; no two results may be the same revision."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for row in results:
        name = (row["meter"], hour_of(row["_event"]))
        expected = found[name]["_revision"] + 1 if name in found else 0
        assert row["_revision"] == expected, (name, row, found.get(name))
        found[name] = row
    return {
        name: (row["kwh"], row["n"]) for name, row in found.items() if row["_status"] != "retracted"
    }
