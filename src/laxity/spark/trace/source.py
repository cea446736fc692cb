"""A recorded or generated trace, replayed as a live stream: `format("laxity.trace")`.

Rows come in order of arrival. *Flood* gives them as fast as they are taken, timestamps untouched:
the same rows in the same order every time. *Live*, or n times faster than live, gives each row
when its arrival is due and moves `event` and `arrival` to the wall clock. An offset is the number
of rows given and the moment the replay began, so a restart goes on where it was, on the same clock.
The options are in `laxity.spark.trace.options`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from laxity.errors import ConfigError, StateError
from laxity.spark.rows.wall import now_us
from laxity.spark.trace.files import Trace, locate, open_trace
from laxity.spark.trace.loader import STAMP, columns_for_spark, stamps
from laxity.spark.trace.options import Replay, TraceSpec, parse_options
from laxity.spark.trace.read_limits import (
    LIMITED,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

Offset = dict[str, int]
BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Slice(InputPartition):
    """Rows from `start` up to `end`; `started_us` is when a paced replay began."""

    start: int
    end: int
    started_us: int | None = None


class _Rows:
    """Slices of one trace in the columns asked for: what both readers share."""

    def __init__(self, spec: TraceSpec, replay: Replay, schema: StructType) -> None:
        self._spec, self._replay = spec, replay
        self._file = locate(spec)
        self._columns = columns_for_spark(schema)
        missing = set(self._columns.names) - set(self._trace.rows.column_names)
        if missing:
            have = ", ".join(self._trace.rows.column_names)
            raise ConfigError(
                f"the trace has no column {', '.join(sorted(missing))}; it has {have}"
            )
        if replay.speed is not None and self._trace.arrival is None:
            raise ConfigError(
                f"pace {replay.speed:g} needs to know when rows arrive: "
                'give the option arrival or delay, or leave pace at "flood"'
            )

    @property
    def _trace(self) -> Trace:
        return open_trace(self._spec, self._file)  # never kept: readers travel between processes

    def _slices(self, start: int, end: int, started_us: int | None) -> list[InputPartition]:
        cuts = np.linspace(start, end, self._replay.n_partitions + 1).astype(np.int64).tolist()
        return [Slice(low, high, started_us) for low, high in pairwise(cuts) if high > low]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one slice."""
        assert isinstance(partition, Slice)
        trace, speed = self._trace, self._replay.speed
        rows = trace.rows.slice(partition.start, partition.end - partition.start)
        if partition.started_us is not None and speed is not None and trace.arrival_us is not None:
            first_us = int(trace.arrival_us[0])
            for name in {trace.event, trace.arrival} - {None}:
                at = rows.column_names.index(name)
                moved = rebased(rows.column(at), first_us, partition.started_us, speed)
                rows = rows.set_column(at, name, moved)
        yield from rows.select(self._columns.names).cast(self._columns).to_batches(BATCH_ROWS)


def rebased(column: pa.ChunkedArray, first_us: int, started_us: int, speed: float) -> pa.Array:
    """Times moved to the wall clock of a replay; text that is no time stays as it is.

    >>> texts = pa.chunked_array([["1970-01-01T00:00:04Z", "soon"]])
    >>> rebased(texts, first_us=2_000_000, started_us=0, speed=2.0).to_pylist()
    ['1970-01-01 00:00:01.000000Z', 'soon']
    """
    since_us = pc.subtract(stamps(column, "event").cast(pa.int64()), first_us)
    shrunk_us = pc.floor(pc.divide(since_us.cast(pa.float64()), speed)).cast(pa.int64())
    moved = pc.add(shrunk_us, started_us).cast(STAMP)
    return pc.coalesce(moved.cast(pa.string()), column) if _is_text(column) else moved


def _is_text(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_string(column.type))


class TraceBatchReader(_Rows, DataSourceReader):
    """The whole trace at once, timestamps untouched."""

    def partitions(self) -> list[InputPartition]:
        """The trace in as many slices as asked for."""
        return self._slices(0, self._trace.rows.num_rows, None)


class TraceReader(_Rows, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The trace as a stream; `clock` is the wall clock unless a test sets its own."""

    def __init__(
        self,
        spec: TraceSpec,
        replay: Replay,
        schema: StructType,
        clock: Callable[[], int] = now_us,
    ) -> None:
        super().__init__(spec, replay, schema)
        self._clock = clock
        self._stop_us: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """No row given, and the replay begins now."""
        return {"row": 0, "started_us": self._clock()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """How far a micro-batch may go: what has arrived, within the limit."""
        first = self.check(start)["row"]
        last = max(first, self._arrived(start["started_us"]))
        if isinstance(limit, ReadMaxRows):
            last = min(last, first + limit.max_rows)
        return {"row": last, "started_us": start["started_us"]}

    def check(self, start: Offset) -> Offset:
        """The offset, unless it is none of this trace."""
        if start["row"] > self._trace.rows.num_rows:
            raise StateError(
                f"the checkpoint has read {start['row']} rows of a trace that has "
                f"{self._trace.rows.num_rows}: it belongs to another trace; use a new checkpoint"
            )
        return start

    def _arrived(self, started_us: int) -> int:
        arrival_us, speed = self._trace.arrival_us, self._replay.speed
        if speed is None or arrival_us is None or not arrival_us.size:
            return int(self._trace.rows.num_rows)
        now = self._clock() if self._stop_us is None else self._stop_us
        due_us = int(arrival_us[0]) + math.floor(max(0, now - started_us) * speed)
        return int(np.searchsorted(arrival_us, due_us, side="right"))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """`rows_per_batch`, if it was given."""
        most = self._replay.rows_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """From here on nothing more arrives."""
        self._stop_us = self._clock()

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The rows between two offsets, in as many slices as asked for."""
        started_us = None if self._replay.speed is None else end["started_us"]
        return self._slices(start["row"], end["row"], started_us)


class WholeTraceReader(DataSourceStreamReader):
    """The trace for a Spark before 4.2: all that has arrived, whatever `rows_per_batch` says.

    Such a Spark does not say where a source was, so after a restart the clock of a paced replay
    is known only if there is a batch to do again.
    """

    def __init__(self, reader: TraceReader, paced: bool) -> None:
        self._reader, self._paced = reader, paced
        self._started_us = None if paced else 0

    def initialOffset(self) -> Offset:  # noqa: N802
        """No row given, and a paced replay begins when first asked."""
        if self._started_us is None:
            self._started_us = self._reader.initialOffset()["started_us"]
        return {"row": 0, "started_us": self._started_us}

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802
        """How far the replay has come."""
        return self._reader.latestOffset(self.initialOffset(), ReadAllAvailable())

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The rows between two offsets, which are on one clock."""
        if self._paced and start["row"] and start["started_us"] != end["started_us"]:
            raise StateError(
                "Spark before 4.2 does not tell a source where it was, so a paced replay cannot "
                "go on after a restart: use a new checkpoint, or pace flood, or a newer Spark"
            )
        self._started_us = end["started_us"] if self._paced else 0
        return self._reader.partitions(self._reader.check(start), end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one slice."""
        return self._reader.read(partition)


class TraceSource(DataSource):
    """The data source `laxity.trace`."""

    @classmethod
    def name(cls) -> str:
        """How Spark calls it."""
        return "laxity.trace"

    def schema(self) -> StructType:
        """The trace's own columns."""
        spec, replay = parse_options(self.options)
        rows = open_trace(spec, locate(spec)).rows
        columns = from_arrow_schema(rows.schema, prefer_timestamp_ntz=False)
        _Rows(spec, replay, columns)  # what it refuses is refused now, not once the query runs
        return columns

    def reader(self, schema: StructType) -> DataSourceReader:
        """The trace as a batch."""
        return TraceBatchReader(*parse_options(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The trace as a stream."""
        spec, replay = parse_options(self.options)
        reader = TraceReader(spec, replay, schema)
        return reader if LIMITED else WholeTraceReader(reader, replay.speed is not None)
