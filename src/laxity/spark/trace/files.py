"""A trace, made once and laid down in order of arrival.

A trace comes from files or from a generator. It is materialised as one Arrow file in the user's
cache folder, named after everything that determines its rows, and memory-mapped by every process
that reads it; a process that does not find it makes it again. A new file appears whole or not at
all. Files are left behind for the next run with the same trace, until nobody has used them for a
month.
"""

import hashlib
import inspect
import os
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import laxity.core.delays
from laxity.cache_folder import cache_folder, found, is_own, replacing
from laxity.core.delays import parse_delay
from laxity.errors import ConfigError
from laxity.spark.rows.wall import now_us
from laxity.spark.trace.loader import (
    STAMP,
    filled_us,
    find_files,
    find_generator,
    for_spark,
    generate,
    load_files,
)
from laxity.spark.trace.options import TraceSpec

ARRIVAL = "arrival"
HIDDEN_ARRIVAL = "__arrival_us"
CHUNK_ROWS = 65_536
UNUSED_US = 30 * 86_400_000_000


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace in order of arrival; `event` and `arrival` name its columns, if it has them."""

    rows: pa.Table
    arrival_us: NDArray[np.int64] | None
    event: str | None
    arrival: str | None


def locate(spec: TraceSpec) -> Path:
    """Where the trace lies; it is made first if it is not there."""
    determines = [astuple(spec), [_version(file) for file in _depends_on(spec)]]
    name = hashlib.sha256(repr(determines).encode()).hexdigest()[:32]
    folder = cache_folder("traces")
    file = folder / f"trace-{name}.arrow"
    if found(file):
        os.utime(file)  # somebody uses it
    else:
        _tidy(folder)
        _write(_arranged(spec), file)
    return file


@lru_cache(maxsize=8)
def open_trace(spec: TraceSpec, file: Path) -> Trace:
    """The trace at the place `locate` named, memory-mapped; made again if it has gone."""
    here = file if is_own(file) else locate(spec)
    rows = pa.ipc.open_file(pa.memory_map(str(here))).read_all()
    names = {key.decode(): value.decode() for key, value in (rows.schema.metadata or {}).items()}
    arrival_us = None
    if "arrival" in names:
        arrival_us = rows.column(HIDDEN_ARRIVAL).to_numpy()
        rows = rows.drop_columns([HIDDEN_ARRIVAL])
    return Trace(rows, arrival_us, names.get("event"), names.get("arrival"))


def _tidy(folder: Path) -> None:
    """Remove traces that nobody has opened for a month."""
    for file in folder.iterdir():
        with suppress(FileNotFoundError):  # another process tidies too
            if now_us() - file.stat().st_mtime_ns // 1000 > UNUSED_US:
                file.unlink()


def _depends_on(spec: TraceSpec) -> list[Path]:
    """The files whose change makes another trace: data, or code that generates it."""
    delays = [Path(laxity.core.delays.__file__)]
    if spec.delay and spec.delay.startswith("empirical:"):
        delays.append(Path(spec.delay.removeprefix("empirical:")))
    if spec.generator:
        home = Path(inspect.getfile(find_generator(spec.generator))).parent
        return [*sorted(home.glob("*.py")), *delays]
    return [*find_files(str(spec.path)), *delays]


def _version(file: Path) -> tuple[str, int, int]:
    try:
        stat = file.stat()
    except OSError:
        return str(file), -1, -1  # whoever reads it will say what is wrong
    return str(file), stat.st_size, stat.st_mtime_ns


def _arranged(spec: TraceSpec) -> pa.Table:
    """The rows in order of arrival, with the hidden arrival and the names of the time columns."""
    rows = _loaded(spec)
    event = _column("event", spec.event, spec, rows)
    if spec.delay:
        rows, arrival_us = _delayed(rows, event, spec)
        return _sorted(_named(rows, event, ARRIVAL), arrival_us)
    arrival = _column("arrival", spec.arrival, spec, rows)
    if arrival is None:
        return _named(rows, event, None)
    return _sorted(_named(rows, event, arrival), filled_us(rows.column(arrival), arrival))


def _named(rows: pa.Table, event: str | None, arrival: str | None) -> pa.Table:
    names = {"event": event, "arrival": arrival}
    known = {option: name for option, name in names.items() if name}
    return for_spark(rows).replace_schema_metadata(known)


def _column(option: str, name: str | None, spec: TraceSpec, rows: pa.Table) -> str | None:
    """The column an option names; for a generator, the one called like the option."""
    if name is None:
        return option if spec.generator and option in rows.column_names else None
    if name not in rows.column_names:
        columns = ", ".join(rows.column_names)
        raise ConfigError(f"{option} must name a column of the trace ({columns}); got {name!r}")
    return name


def _loaded(spec: TraceSpec) -> pa.Table:
    if spec.generator:
        return generate(spec.generator, dict(spec.args), spec.seed)
    return load_files(find_files(str(spec.path)))


def _delayed(
    rows: pa.Table, event: str | None, spec: TraceSpec
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Rows in order of event, with an arrival drawn for each."""
    if event is None:
        raise ConfigError(f"delay {spec.delay!r} needs the option event: the column it starts from")
    if ARRIVAL in rows.column_names:
        raise ConfigError(
            f"the trace has a column {ARRIVAL!r} already, so delay {spec.delay!r} cannot add it: "
            "use the option arrival, or rename the column"
        )
    event_us = filled_us(rows.column(event), event)
    order = np.argsort(event_us, kind="stable")
    model = parse_delay(str(spec.delay))
    arrival_us = model.arrivals_us(event_us[order], np.random.default_rng(spec.seed))
    column = pa.array(arrival_us).cast(STAMP)
    return rows.take(pa.array(order)).append_column(ARRIVAL, column), arrival_us


def _sorted(rows: pa.Table, arrival_us: NDArray[np.int64]) -> pa.Table:
    rows = rows.append_column(HIDDEN_ARRIVAL, pa.array(arrival_us))
    if bool(np.all(arrival_us[1:] >= arrival_us[:-1])):
        return rows
    return rows.take(pa.array(np.argsort(arrival_us, kind="stable")))


def _write(rows: pa.Table, file: Path) -> None:
    with replacing(file) as draft, pa.ipc.new_file(str(draft), rows.schema) as sink:
        sink.write_table(rows, max_chunksize=CHUNK_ROWS)
