"""The trace source: same rows however they are cut, on the clock it says."""

import json
import pickle
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.types import StructType

from laxity.errors import ConfigError, StateError
from laxity.spark.trace.files import locate, open_trace
from laxity.spark.trace.options import parse_options
from laxity.spark.trace.read_limits import ReadAllAvailable, ReadMaxRows
from laxity.spark.trace.source import TraceReader, TraceSource, WholeTraceReader

START_US = 1_767_225_600_000_000
BUS = {"generator": "laxity.sim.workload:bus", "arg.seconds": "1", "arg.areas": "4"}
Rows = list[dict[str, Any]]


def ticks(seed: int, rows: int = 10, gap_s: float = 1.0) -> dict[str, NDArray[Any]]:
    """A row every `gap_s`, each half a second late."""
    event_us = START_US + (np.arange(rows) * gap_s * 1e6).astype(np.int64)
    names = np.array([f"row {number}" for number in range(rows)], dtype=np.str_)
    return {
        "event_us": event_us,
        "arrival_us": event_us + 500_000,
        "n": np.arange(rows),
        "t": names,
    }


TICKS = {"generator": f"{__name__}:ticks"}


class Bench:
    """A reader on a clock that stands still until told."""

    def __init__(self, options: dict[str, str], schema: StructType | None = None) -> None:
        asked = schema or TraceSource(options).schema()
        self.now_us = 5_000_000
        self.reader = TraceReader(*parse_options(options), asked, lambda: self.now_us)

    def rows(self, start: dict[str, int], end: dict[str, int]) -> Rows:
        slices = self.reader.partitions(start, end)
        return [row for one in slices for batch in self.reader.read(one) for row in us(batch)]

    def all(self) -> Rows:
        start = self.reader.initialOffset()
        return self.rows(start, self.reader.latestOffset(start, ReadAllAvailable()))


def us(batch: pa.RecordBatch) -> Rows:
    """Rows with timestamps as microseconds."""
    fields = [
        pa.field(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type)
        for f in batch.schema
    ]
    rows: Rows = batch.cast(pa.schema(fields)).to_pylist()
    return rows


cuts = st.lists(st.integers(0, 500), max_size=8).map(lambda inner: sorted([0, *inner, 500]))


@given(cuts, st.integers(1, 5), st.sampled_from(["flood", "live", "7"]))
def test_any_batching_gives_the_same_rows(cuts: list[int], partitions: int, pace: str) -> None:
    bench = Bench(BUS | {"partitions": str(partitions), "pace": pace})
    offsets = [{"row": row, "started_us": 42} for row in cuts]
    pieces = [bench.rows(start, end) for start, end in pairwise(offsets)]
    assert list(chain.from_iterable(pieces)) == bench.rows(offsets[0], offsets[-1])
    assert [len(piece) for piece in pieces] == np.diff(cuts).tolist()


@given(st.integers(0, 500), st.sampled_from(["flood", "10"]))
def test_a_restart_goes_on_with_the_same_rows_and_clock(middle: int, pace: str) -> None:
    whole = Bench(BUS | {"pace": pace})
    start = whole.reader.initialOffset()
    whole.now_us += 60_000_000
    end = whole.reader.latestOffset(start, ReadAllAvailable())
    stop = json.loads(json.dumps(whole.reader.latestOffset(start, ReadMaxRows(middle))))
    again = Bench(BUS | {"pace": pace})
    again.now_us = whole.now_us + 1
    rest = again.rows(stop, again.reader.latestOffset(stop, ReadAllAvailable()))
    assert whole.rows(start, stop) + rest == whole.rows(start, end)


def test_a_batch_takes_no_more_than_the_limit_and_no_more_than_there_is() -> None:
    reader = Bench(TICKS | {"rows_per_batch": "4"}).reader
    assert reader.getDefaultReadLimit() == ReadMaxRows(4)
    offset, seen = reader.initialOffset(), []
    for _ in range(5):
        offset = reader.latestOffset(offset, reader.getDefaultReadLimit())
        seen.append(offset["row"])
    assert seen == [4, 8, 10, 10, 10]
    assert reader.partitions(offset, offset) == []
    assert Bench(TICKS).reader.getDefaultReadLimit() == ReadAllAvailable()


def test_flood_leaves_times_as_they_are() -> None:
    rows = Bench(TICKS).all()
    assert [row["n"] for row in rows] == list(range(10))
    assert rows[3] == {
        "event": START_US + 3_000_000,
        "arrival": START_US + 3_500_000,
        "n": 3,
        "t": "row 3",
    }


@pytest.mark.parametrize(("pace", "speed"), [("live", 1), ("4", 4), ("0.5", 0.5)])
def test_a_paced_row_is_given_when_its_arrival_is_due(pace: str, speed: float) -> None:
    bench = Bench(TICKS | {"pace": pace})
    start = bench.reader.initialOffset()
    due_us = start["started_us"] + int(6_000_000 / speed)
    bench.now_us = due_us - 1
    assert bench.reader.latestOffset(start, ReadAllAvailable())["row"] == 6
    bench.now_us = due_us
    end = bench.reader.latestOffset(start, ReadAllAvailable())
    assert end == {"row": 7, "started_us": start["started_us"]}
    last = bench.rows(start, end)[-1]
    assert last["arrival"] == due_us
    assert last["event"] == due_us - 500_000 / speed


def test_a_clock_set_back_takes_nothing_back() -> None:
    bench = Bench(TICKS | {"pace": "live"})
    bench.now_us = 0
    start = {"row": 5, "started_us": 9_000_000}
    assert bench.reader.latestOffset(start, ReadAllAvailable()) == start


def test_available_now_ends_with_what_has_arrived() -> None:
    bench = Bench(TICKS | {"pace": "live"})
    start = bench.reader.initialOffset()
    bench.now_us += 2_000_000
    bench.reader.prepareForTriggerAvailableNow()
    bench.now_us += 5_000_000
    assert bench.reader.latestOffset(start, ReadAllAvailable())["row"] == 3
    flood = Bench(TICKS)
    flood.reader.prepareForTriggerAvailableNow()
    assert len(flood.all()) == 10


def test_arguments_and_seed_reach_the_generator() -> None:
    assert len(Bench(TICKS | {"arg.rows": "3", "arg.gap_s": "0.5"}).all()) == 3
    assert Bench(BUS | {"seed": "1"}).all() != Bench(BUS | {"seed": "2"}).all()


def test_a_schema_picks_and_converts_columns() -> None:
    assert Bench(TICKS, StructType().add("t", "string").add("n", "double")).all()[2] == {
        "t": "row 2",
        "n": 2.0,
    }
    with pytest.raises(ConfigError, match="no column m; it has event, arrival, n, t"):
        Bench(TICKS, StructType().add("m", "string"))


def test_garbage_stays_as_it_is_on_the_wall_clock(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("at,n\n2026-01-01T00:00:01Z,1\nsoon,2\n,3\n")
    options = {"path": str(tmp_path), "event": "at", "delay": "constant:1s", "pace": "live"}
    assert [row["at"] for row in Bench(options).all()] == [
        "1970-01-01 00:00:04.000000Z",
        "soon",
        None,
    ]


def test_a_trace_may_be_empty() -> None:
    assert Bench(TICKS | {"arg.rows": "0", "pace": "live"}).all() == []


def test_a_checkpoint_of_a_longer_trace_is_refused() -> None:
    with pytest.raises(StateError, match="read 11 rows of a trace that has 10"):
        Bench(TICKS).reader.latestOffset({"row": 11, "started_us": 0}, ReadAllAvailable())


@pytest.mark.since(4, 2)
def test_a_reader_travels_to_processes_that_have_no_trace_yet() -> None:
    source = TraceSource(TICKS)
    reader = source.streamReader(source.schema())
    rows = [row for one in read_all(reader) for row in us(one)]
    locate(parse_options(TICKS)[0]).unlink()
    open_trace.cache_clear()
    again = read_all(pickle.loads(pickle.dumps(reader)))
    assert [row for one in again for row in us(one)] == rows


def read_all(reader: DataSourceStreamReader) -> list[pa.RecordBatch]:
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    return [batch for one in reader.partitions(start, end) for batch in reader.read(one)]


def whole(options: dict[str, str]) -> WholeTraceReader:
    bench = Bench(options)
    return WholeTraceReader(bench.reader, paced="pace" in options)


def test_a_spark_before_4_2_gets_the_whole_trace() -> None:
    reader = whole(TICKS | {"rows_per_batch": "4"})
    assert reader.latestOffset()["row"] == 10  # after a restart too
    start = reader.initialOffset()
    (one, two) = reader.partitions(start, reader.latestOffset())
    rows = [row["n"] for part in (one, two) for batch in reader.read(part) for row in us(batch)]
    assert rows == list(range(10))
    with pytest.raises(StateError, match="read 11 rows of a trace that has 10"):
        reader.partitions({"row": 11, "started_us": 0}, reader.latestOffset())


def test_a_spark_before_4_2_gets_what_has_arrived_of_a_paced_replay() -> None:
    reader = whole(TICKS | {"pace": "live"})
    end = reader.latestOffset()
    assert end == {"row": 1, "started_us": 5_000_000}
    assert reader.initialOffset() == {"row": 0, "started_us": 5_000_000}
    assert len(reader.partitions(reader.initialOffset(), end)) == 1
    again = whole(TICKS | {"pace": "live"})
    again.partitions({"row": 1, "started_us": 2_000_000}, {"row": 3, "started_us": 2_000_000})
    assert again.latestOffset() == {"row": 4, "started_us": 2_000_000}


def test_a_spark_before_4_2_cannot_go_on_with_a_paced_replay() -> None:
    again = whole(TICKS | {"pace": "live"})
    with pytest.raises(StateError, match="cannot go on after a restart: use a new checkpoint"):
        again.partitions({"row": 3, "started_us": 2_000_000}, again.latestOffset())
