"""The trace source: same rows however they are cut, on the clock it says, errors with a cure."""

import json
import pickle
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laxity.errors import ConfigError, EngineError, StateError
from laxity.spark import tracefile
from laxity.spark.trace import TraceReader, TraceSource
from laxity.spark.traceoptions import parse_options
from numpy.typing import NDArray
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_US = 1_767_225_600_000_000
BUS = {"generator": "laxity.sim.workload:bus", "arg.seconds": "1", "arg.areas": "4"}


def at(second: float) -> datetime:
    return EPOCH + timedelta(seconds=second)


def ticks(seed: int, rows: int = 10, gap_s: float = 1.0) -> dict[str, NDArray[Any]]:
    """A generator of this test: one row every `gap_s`, each half a second late."""
    event_us = EPOCH_US + (np.arange(rows) * gap_s * 1e6).astype(np.int64)
    names = np.array([f"row {number}" for number in range(rows)], dtype=np.str_)
    return {"event_us": event_us, "arrival_us": event_us + 500_000, "n": np.arange(rows), "t": names}


TICKS = {"generator": f"{__name__}:ticks"}


class Stage:
    """A reader on a clock that stands still until told."""

    def __init__(self, **options: str) -> None:
        source = TraceSource(options)
        self.now_us = 5_000_000
        self.reader = TraceReader(
            *parse_options(options), StructType.fromJson(source.schema().jsonValue()), self.clock
        )

    def clock(self) -> int:
        return self.now_us

    def rows(self, start: dict[str, int], end: dict[str, int]) -> list[dict[str, Any]]:
        slices = self.reader.partitions(start, end)
        batches = [batch for one in slices for batch in self.reader.read(one)]
        return pa.Table.from_batches(batches).to_pylist() if batches else []

    def all(self) -> list[dict[str, Any]]:
        start = self.reader.initialOffset()
        return self.rows(start, self.reader.latestOffset(start, ReadAllAvailable()))


@pytest.fixture(autouse=True)
def _own_temp_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracefile.tempfile, "tempdir", str(tmp_path_factory.mktemp("traces")))
