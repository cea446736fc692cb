"""The merge: its kernel alone, against native window aggregation, and against the naive way.

The naive way is the same merge written with `transformWithStateInPandas`: held rows in a list
state, two keys so that both cores work.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from bench.batches import bare_ms, our_ms
from bench.line import Line
from bench.naive_merge import COLUMNS, naive_merge
from laxity.core.release import Rows, release

ROWS = 250_000  # of each source in a batch
BATCHES = 8
WARM = 3  # batches of a run that do not count
TURNS = 2
LAG_US = 5_000_000  # how far the second source is behind
GAP_US = 100
START_US = 1_700_000_000_000_000


def run() -> Iterator[Line]:
    yield Line("gate kernel, million rows a second on one core", _kernel() / 1e6, at_least=10)
    spark = lx.session("laxity bench")
    rocks = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", rocks)
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("json", "parquet"):
            _make(spark, Path(folder) / kind, kind)
            against = _ratio(spark, Path(folder) / kind, kind, _native_windows, _our_windows)
            what = f"merge + windows against withWatermark + windows, {kind} (their time / ours)"
            yield Line(what, against, at_least=0.7)
        naive = _ratio(spark, Path(folder) / "parquet", "parquet", _naive, _ours)
        what = "merge in order against transformWithStateInPandas, parquet (their time / ours)"
        yield Line(what, naive, at_least=3)


def _kernel() -> float:
    n = 2_000_000
    rng = np.random.default_rng(0)
    event_us = np.sort(rng.integers(0, 10**9, n))
    rows = Rows(event_us, rng.integers(0, 2, n), np.arange(n), np.arange(n))
    rates = []
    for _ in range(7):
        began = time.perf_counter()
        release(rows, frontier_us=10**9 - 10**7, merge_us=10**9 - 2 * 10**7, position=(5, 0, 0))
        rates.append(n / (time.perf_counter() - began))
    return statistics.median(rates[2:])


def _make(spark: SparkSession, folder: Path, kind: str) -> None:
    for source, lag_us in (("bus", 0), ("scats", LAG_US)):
        for batch in range(BATCHES):
            ids = spark.range(batch * ROWS, (batch + 1) * ROWS, 1, 1)
            event_us = F.lit(START_US - lag_us) + F.col("id") * 2 * GAP_US
            ids.select(
                F.timestamp_micros(event_us).alias("ts"),
                "id",
                (F.col("id") % 97).alias("area"),
                (F.col("id") % 1000).alias("value"),
            ).write.mode("append").format(kind).save(str(folder / source))


def _ratio(
    spark: SparkSession,
    folder: Path,
    kind: str,
    theirs: Callable[[dict[str, DataFrame], Path], list[int]],
    ours: Callable[[dict[str, DataFrame], Path], list[int]],
) -> float:
    """Their batch time over ours, in turns that alternate: the median turn."""
    ratios = []
    for turn in range(TURNS + 1):
        work = folder / f"{ours.__name__}-{turn}"
        times = [
            statistics.median(run(_input(spark, folder, kind), work / run.__name__)[WARM:])
            for run in (theirs, ours)
        ]
        ratios.append(times[0] / times[1])
    return statistics.median(ratios[1:])  # the first turn warms Java up


def _input(spark: SparkSession, folder: Path, kind: str) -> dict[str, DataFrame]:
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).format(kind)
    return {name: reader.load(str(folder / name)) for name in ("bus", "scats")}


def _windows(rows: DataFrame, time: str, area: str, value: str) -> DataFrame:
    by = (F.window(time, "1 second"), F.col(area).alias("area"))
    return rows.groupBy(*by).agg(F.count(F.lit(1)).alias("n"), F.sum(value).alias("total"))


def _native_windows(sources: dict[str, DataFrame], work: Path) -> list[int]:
    rows = sources["bus"].union(sources["scats"]).withWatermark("ts", "5 seconds")
    writer = _windows(rows, "ts", "area", "value").writeStream.outputMode("append")
    return bare_ms(writer.format("parquet").option("path", f"{work}/out"), work)


def _naive(sources: dict[str, DataFrame], work: Path) -> list[int]:
    writer = naive_merge(sources).writeStream.outputMode("append")
    return bare_ms(writer.format("parquet").option("path", f"{work}/out"), work)


def _merged(sources: dict[str, DataFrame]) -> lx.Stream:
    named = [
        lx.source(name, rows, event_time="ts", sequence="id", unique_times=True)
        for name, rows in sources.items()
    ]
    return lx.merge(*named, slack=None)


def _our_windows(sources: dict[str, DataFrame], work: Path) -> list[int]:
    def windows(rows: DataFrame) -> DataFrame:
        flat = rows.select(
            "_event",
            F.coalesce("bus.area", "scats.area").alias("a"),
            F.coalesce("bus.value", "scats.value").alias("v"),
        )
        return _windows(flat, "_event", "a", "v")

    return our_ms(_merged(sources).apply(windows), work)


def _ours(sources: dict[str, DataFrame], work: Path) -> list[int]:
    return our_ms(_merged(sources), work)
