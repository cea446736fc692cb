"""What merging adds to a stream."""

from collections.abc import Sequence
from typing import TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql.types import DataType, StructType

from laxity.durations import Duration, duration_us
from laxity.errors import ConfigError
from laxity.spark.engine.draft import Draft
from laxity.spark.merging.join import Join
from laxity.spark.merging.merge import Merge

S = TypeVar("S", bound=Draft)


def join(
    stream: S,
    left: str,
    right: str,
    *,
    on: str | Sequence[str],
    within: Duration,
    when: str = "true",
) -> S:
    """Pair the rows of two sources of a merge, in a sliding window; each pair comes once.

    Parameters
    ----------
    stream
        The stream itself, as `lx.merge` makes it.
    left, right
        The two sources.
    on
        The column or columns, of both sources, that must be equal.
    within
        How far apart in event time.
    when
        A condition in SQL, like `"bus.delay > 120 AND scats.flow > 40"`.

    Returns
    -------
    Stream
        With the columns of `on`, a struct for either source, `_event` and `_arrival` of the later
        row, and `_read`, how the second of them was read.

    Raises
    ------
    ConfigError
        If no merge is right before it, or the columns are not there.
    """
    if not stream.stages or not isinstance(stream.stages[-1], Merge):
        raise ConfigError("join takes rows as a merge reads them: call it right after lx.merge")
    keys = (on,) if isinstance(on, str) else tuple(on)
    _check_sides(stream, left, right, keys)
    names = stream.branch.names
    stage = Join(left, right, keys, duration_us(within, "within"), when, names)
    try:
        result = stage.among(stream.empty)
    except AnalysisException as error:
        raise ConfigError(f"join: when {when!r} does not fit the columns: {error}") from error
    return stream.then(stage, result.schema)


def _check_sides(stream: Draft, left: str, right: str, keys: Sequence[str]) -> None:
    names = stream.branch.names
    if left == right or not {left, right} <= set(names):
        raise ConfigError(
            f"join pairs two different sources of the merge ({', '.join(names)}); "
            f"got {left} and {right}"
        )
    if not keys:
        raise ConfigError("join needs at least one column in on=")
    for key in keys:
        kinds = [_field(stream.schema, side, key) for side in (left, right)]
        if kinds[0] != kinds[1]:
            shown = " and ".join(kind.simpleString() for kind in kinds)
            raise ConfigError(f"join: column {key} has two types, {shown}: cast one")
        if key in names or key.startswith("_"):
            raise ConfigError(f"join: {key} is taken as a name of the result; rename the column")


def _field(schema: StructType, source: str, column: str) -> DataType:
    """The type of a source's column."""
    fields = schema[source].dataType
    assert isinstance(fields, StructType)
    if column not in fields.names:
        there = ", ".join(fields.names)
        raise ConfigError(f"join: source {source} has no column {column}; there are {there}")
    return fields[column].dataType
