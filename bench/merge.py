"""The merge: its kernel alone, and against the naive way.

The naive way is the same merge written with `transformWithStateInPandas`: held rows in a list
state, two keys so that both cores work.

Queries run for days, and Java takes minutes to warm up to a planner that runs anew in every batch:
before anything counts, both sides have taken `WARM_TURNS` turns.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

import laxity as lx
from bench.batches import bare_ms, our_ms
from bench.line import Line
from bench.naive_merge import COLUMNS, naive_merge
from laxity.core.release import Rows, release

ROWS = 250_000  # of each source in a batch
BATCHES = 16
WARM = 3  # batches of a run that do not count
WARM_TURNS = 8
TURNS = 3
LAG_US = 5_000_000  # how far the second source is behind
GAP_US = 100
START_US = 1_700_000_000_000_000


def run() -> Iterator[Line]:
    yield Line("gate kernel, million rows a second on one core", _kernel() / 1e6, at_least=10)
    spark = lx.session("laxity bench")
    rocks = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", rocks)
    with tempfile.TemporaryDirectory() as folder:
        files = Files(spark, Path(folder))
        files.make()
        _ratios(files, _naive, _ours, turns=WARM_TURNS)
        what = "merge in order against transformWithStateInPandas (their time / ours)"
        yield Line(what, _ratio(files, _naive, _ours), at_least=3)


@dataclass(frozen=True)
class Files:
    """The two sources as files, a batch each."""

    spark: SparkSession
    folder: Path

    def make(self) -> None:
        """Write them."""
        for source, lag_us in (("bus", 0), ("scats", LAG_US)):
            for batch in range(BATCHES):
                ids = self.spark.range(batch * ROWS, (batch + 1) * ROWS, 1, 1)
                event_us = F.lit(START_US - lag_us) + F.col("id") * 2 * GAP_US
                ids.select(
                    F.timestamp_micros(event_us).alias("ts"),
                    "id",
                    (F.col("id") % 97).alias("area"),
                    (F.col("id") % 1000).alias("value"),
                ).write.mode("append").parquet(str(self.folder / source))

    def read(self) -> dict[str, DataFrame]:
        """Read them as streams."""
        reader = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        return {name: reader.parquet(str(self.folder / name)) for name in ("bus", "scats")}


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


Run = Callable[[dict[str, DataFrame], Path], list[int]]


def _ratio(files: Files, theirs: Run, ours: Run) -> float:
    """Their batch time over ours: the median turn, after one that does not count."""
    return statistics.median(_ratios(files, theirs, ours, turns=TURNS + 1)[1:])


def _ratios(files: Files, theirs: Run, ours: Run, turns: int) -> list[float]:
    """Their batch time over ours, in turns that alternate."""
    ratios = []
    for turn in range(turns):
        work = files.folder / f"{ours.__name__}-{turn}-of-{turns}"
        times = [
            statistics.median(run(files.read(), work / run.__name__)[WARM:])
            for run in (theirs, ours)
        ]
        ratios.append(times[0] / times[1])
        what = f"{ours.__name__}, turn {turn + 1} of {turns}"
        Console(stderr=True).print(f"{what}: {times} ms, {ratios[-1]:.2f}", highlight=False)
    return ratios


def _naive(sources: dict[str, DataFrame], work: Path) -> list[int]:
    writer = naive_merge(sources).writeStream.outputMode("append")
    return bare_ms(writer.format("parquet").option("path", f"{work}/out"), work)


def _ours(sources: dict[str, DataFrame], work: Path) -> list[int]:
    named = [
        lx.source(name, rows, event_time="ts", sequence="id", unique_times=True)
        for name, rows in sources.items()
    ]
    return our_ms(lx.merge(*named, slack=None), work)
