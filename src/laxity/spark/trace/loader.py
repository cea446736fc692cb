"""Rows of a trace, from files or a generator, as an Arrow table that Spark can read.

Values are never repaired: text that is no timestamp stays text, a null stays null. A CSV column
becomes a number, truth value or timestamp only if every value in all files is one. Times without
a zone are UTC.
"""

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, parquet
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from laxity.errors import ConfigError
from laxity.spark.jvm.spark_version import spark_version

STAMP = pa.timestamp("us", tz="UTC")
CSV_TYPES = (pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us"), STAMP)
SUFFIXES = (".parquet", ".csv", ".csv.gz")


def find_files(path: str) -> list[Path]:
    """The Parquet or CSV files a file name, folder or glob stands for, by name."""
    folder = Path(path)
    globbed = glob(path)  # noqa: PTH207 (Path.glob takes no absolute pattern)
    matches = folder.rglob("*") if folder.is_dir() else map(Path, globbed)
    files = [file for file in matches if file.name.endswith(SUFFIXES) and file.name[0] not in "._"]
    if not files or len({_is_csv(file) for file in files}) > 1:
        raise ConfigError(
            f"path must lead to Parquet or to CSV files (*{', *'.join(SUFFIXES)}); "
            f"got {path!r}: {len(files)} such files"
        )
    return sorted(files)


def _is_csv(file: Path) -> bool:
    return not file.name.endswith(".parquet")


def load_files(files: Sequence[Path]) -> pa.Table:
    """All rows in the order of the files; a column that a file lacks is null there."""
    read = _csv_text if _is_csv(files[0]) else parquet.read_table
    try:
        rows = pa.concat_tables([read(file) for file in files], promote_options="permissive")
    except (pa.ArrowException, OSError) as error:
        names = ", ".join(file.name for file in files)
        raise ConfigError(
            f"cannot read the trace's files as one table ({names}): {error}"
        ) from error
    if _is_csv(files[0]):
        return pa.table({name: _narrowed(rows.column(name)) for name in rows.column_names})
    return rows


def _csv_text(file: Path) -> pa.Table:
    with csv.open_csv(file) as first:
        names = first.schema.names
    if len(set(names)) < len(names):
        raise ConfigError(f"columns must have different names; {file} has {', '.join(names)}")
    texts = dict.fromkeys(names, pa.string())
    as_text = csv.ConvertOptions(column_types=texts, strings_can_be_null=True, null_values=[""])
    return csv.read_csv(file, convert_options=as_text)


def _narrowed(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in the first type that holds all its values; as it is if none does."""
    for kind in CSV_TYPES:
        try:
            return text.cast(kind)
        except pa.ArrowInvalid:
            continue
    return text


def find_generator(name: str) -> Callable[..., Mapping[str, NDArray[Any]]]:
    """The function that `module:function` names."""
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f'generator must name a function as "module:function"; got {name!r}: {error}'
        ) from error
    if not inspect.isfunction(found):
        raise ConfigError(
            f"generator must name a Python function; got {name!r}, which is {found!r}"
        )
    return found


def generate(name: str, args: Mapping[str, str], seed: int) -> pa.Table:
    """What the generator gives; columns `*_us` become timestamps without the suffix."""
    function = find_generator(name)
    values = {key: _value(text) for key, text in args.items()} | {"seed": seed}
    try:
        inspect.signature(function).bind(**values)
    except TypeError as error:
        raise ConfigError(
            f"generator {name!r} does not take arguments {values}: {error}"
        ) from error
    columns = function(**values)
    return pa.table(
        {
            key.removesuffix("_us"): pa.array(column).cast(STAMP) if key.endswith("_us") else column
            for key, column in columns.items()
        }
    )


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def for_spark(rows: pa.Table) -> pa.Table:
    """The same values in the types Spark exchanges with Python."""
    fields = [pa.field(field.name, _plain(field.type)) for field in rows.schema]
    try:
        spark_schema = from_arrow_schema(pa.schema(fields), prefer_timestamp_ntz=False)
        return rows.cast(columns_for_spark(spark_schema))
    except (PySparkTypeError, pa.ArrowException) as error:
        raise ConfigError(f"Spark cannot hold a column of the trace: {error}") from error


def columns_for_spark(schema: StructType) -> pa.Schema:
    """Columns as Spark exchanges them with Python, times in UTC."""
    in_utc: dict[str, Any] = {"timezone": "UTC"}
    if spark_version() < (4, 2):
        in_utc = {"timestamp_utc": True}
    return to_arrow_schema(schema, **in_utc)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.int64() if pa.types.is_unsigned_integer(kind) else kind


def stamps(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The column as timestamps; null where its text is none.

    >>> stamps(pa.chunked_array([["2026-01-01 00:00:00", "soon"]]), "ts").null_count
    1
    """
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return column.cast(STAMP, safe=False)
    if not pa.types.is_string(column.type):
        raise ConfigError(
            f"column {name!r} must hold timestamps, or text like 2026-01-01T12:00:00Z; "
            f"it holds {column.type}: convert it first"
        )
    import pandas as pd  # slow, and most traces need none

    times = pd.to_datetime(column.to_pandas(), errors="coerce", utc=True, format="ISO8601")
    return pa.chunked_array([pa.array(times).cast(STAMP, safe=False)])


def filled_us(column: pa.ChunkedArray, name: str) -> NDArray[np.int64]:
    """Timestamps in microseconds; a row without one goes with the row before it.

    >>> filled_us(pa.chunked_array([["soon", "1970-01-01T00:00:01Z", None]]), "ts").tolist()
    [1000000, 1000000, 1000000]
    """
    times = stamps(column, name).cast(pa.int64())
    if len(times) and times.null_count == len(times):
        raise ConfigError(f"column {name!r} holds no timestamp in any of its {len(times)} rows")
    whole = pc.fill_null_backward(pc.fill_null_forward(times.combine_chunks()))
    return np.asarray(whole.to_numpy(zero_copy_only=False), np.int64)
