"""A source: a streaming DataFrame, and how to read time from it.

Whatever its columns, a source's rows get the same few of Laxity's own: `_source`, `_event`,
`_arrival`, `_seq` and, until dead letters are split off, `_dead` (why a row cannot be processed;
null for nearly all) and `_raw` (such a row as JSON). What depends on when a micro-batch began is
filled in by `laxity.spark.engine.arrivals`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from laxity.contract import SourceTerms
from laxity.durations import Duration, duration_us
from laxity.errors import ConfigError
from laxity.spark.rows.columns import OWN, quoted

NO_TIMESTAMP = "no timestamp"
BAD_TIMESTAMP = "unparseable timestamp"
BAD_ROW = "unparseable row"

_CORRUPT = "_corrupt_record"
_KAFKA = {"key", "value", "topic", "partition", "offset", "timestamp"}
_OFFSET_BITS = 48  # a Kafka row's sequence: partition above, offset below


@dataclass(frozen=True)
class Source:
    """A named streaming DataFrame with its own time; made by `laxity.source`."""

    name: str
    df: DataFrame
    terms: SourceTerms
    event: Column
    arrival: Column | None
    seq: Column

    def rows(self, nested: bool) -> DataFrame:
        """Every row with Laxity's columns; the user's beside them, or in one struct."""
        arrival = F.lit(None).cast("timestamp") if self.arrival is None else self.arrival
        dead = self._unread()
        row = F.struct(*map(quoted, self.df.columns))
        user = [quoted(name) for name in self.df.columns if name != _CORRUPT]
        return self.df.select(
            F.lit(self.name).alias("_source"),
            self.event.alias("_event"),
            arrival.alias("_arrival"),
            self.seq.alias("_seq"),
            dead.alias("_dead"),
            F.when(dead.isNotNull(), F.to_json(row, {"ignoreNullFields": "false"})).alias("_raw"),
            *([F.struct(*user).alias(self.name)] if nested else user),
        )

    def _unread(self) -> Column:
        """Why the row's time could not be read; null if it could."""
        given = quoted(self.terms.event_time).isNotNull()
        timeless = F.when(self.event.isNull(), F.when(given, BAD_TIMESTAMP).otherwise(NO_TIMESTAMP))
        if _CORRUPT not in self.df.columns:
            return timeless
        return F.coalesce(F.when(F.col(_CORRUPT).isNotNull(), BAD_ROW), timeless)


def source(
    name: str,
    df: DataFrame,
    *,
    event_time: str,
    arrival: str | None = None,
    sequence: str | Sequence[str] | None = None,
    idle_after: Duration | None = None,
    max_future: Duration = "1min",
    unique_times: bool = False,
    schema: str | StructType | None = None,
) -> Source:
    """Name a streaming DataFrame and say how to read time from it.

    Its rows get the columns `_source`, `_event`, `_arrival` and `_seq`; those whose time cannot be
    read are dead letters.

    Parameters
    ----------
    name
        What the source is called everywhere; a plain word, since it becomes a column of merges.
    df
        Any streaming DataFrame: Kafka, files, a table, `format("laxity.trace")`.
    event_time
        The column that says when a row happened: a timestamp, a date, or text.
    arrival
        The column that says when it reached us; by default Kafka's timestamp, else the start of
        the micro-batch.
    sequence
        What orders rows of equal time: a column, or Kafka's `("partition", "offset")`; by default
        those for Kafka, else a hash of the row.
    idle_after
        How long a silence makes the source idle, so that nobody waits for it; never by default.
    max_future
        A row further past its arrival than this is a dead letter, and moves no clock.
    unique_times
        No two rows have one event time, so a merge need not wait for the source to move on before
        it releases its newest row.
    schema
        Parse the JSON text in the column `value`; rows that do not fit are dead letters, as are
        rows with a `_corrupt_record`.

    Returns
    -------
    Source
        For `laxity.stream` and `laxity.merge`.

    Raises
    ------
    ConfigError
        If the DataFrame is not streaming, or a column is missing or of the wrong type.
    """
    check_name(name)
    if not df.isStreaming:
        raise ConfigError(f"source {name}: the DataFrame is not streaming; use spark.readStream")
    kafka = set(df.columns) >= _KAFKA
    arrival = arrival or ("timestamp" if kafka else None)
    sequence = sequence or (("partition", "offset") if kafka else None)
    if schema is not None:
        df = _parsed(name, df, schema)
    for column in df.columns:
        if column in OWN:
            raise ConfigError(f"source {name}: column {column} is Laxity's own name; rename yours")
    event = _time(name, df, event_time, "event_time")
    order, shown = _sequence(name, df, sequence)
    terms = SourceTerms(
        name=name,
        event_time=event_time,
        arrival=arrival or "the batch's start",
        sequence=shown,
        idle_after_us=None if idle_after is None else duration_us(idle_after, "idle_after"),
        max_future_us=duration_us(max_future, "max_future"),
        unique_times=unique_times,
    )
    when = None if arrival is None else _time(name, df, arrival, "arrival")
    return Source(name, df, terms, event, when, order)


def check_name(name: str) -> None:
    """Refuse a name that cannot be a column's."""
    if not name.isidentifier() or name.startswith("_"):
        raise ConfigError(
            f"a source's name becomes a column, so it must be a plain word; got {name!r}"
        )


def _parsed(name: str, df: DataFrame, schema: str | StructType) -> DataFrame:
    """The JSON in `value` as columns, beside the row's others; `_corrupt_record` if it fails."""
    kind = _type_of(name, df, "value", "schema's")
    if not isinstance(kind, StringType | BinaryType):
        raise ConfigError(
            f"source {name}: column value is {kind.simpleString()}: a schema parses JSON text"
        )
    given = schema if isinstance(schema, StructType) else StructType.fromDDL(schema)
    assert isinstance(given, StructType)
    wanted = StructType([*given.fields]).add(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = F.from_json(F.col("value").cast("string"), wanted, options)
    others = [c for c in df.columns if c != "value" and c not in wanted.fieldNames()]
    return df.withColumn("_parsed", parsed).select(*others, "_parsed.*")


def _time(name: str, df: DataFrame, column: str, role: str) -> Column:
    kind = _type_of(name, df, column, role)
    if isinstance(kind, TimestampType):
        return quoted(column)
    if isinstance(kind, TimestampNTZType | DateType):
        return quoted(column).cast("timestamp")
    if isinstance(kind, StringType):
        return F.try_to_timestamp(quoted(column))
    raise ConfigError(
        f"source {name}: {role} column {column} is {kind.simpleString()}, not a time; for a number "
        f'say its unit first, like df.withColumn("{column}", F.timestamp_millis("{column}"))'
    )


def _sequence(name: str, df: DataFrame, given: str | Sequence[str] | None) -> tuple[Column, str]:
    """The column that orders rows of equal time, and how the contract calls it."""
    if given is None:
        if any(isinstance(field.dataType, MapType) for field in df.schema):
            raise ConfigError(
                f"source {name}: rows with a map cannot be hashed; name a sequence column"
            )
        return F.xxhash64(*map(quoted, df.columns)), "a hash of the row"
    columns = [given] if isinstance(given, str) else list(given)
    whole = [isinstance(_type_of(name, df, c, "sequence"), IntegralType) for c in columns]
    if len(columns) == 1 and whole == [True]:
        return quoted(columns[0]).cast("bigint"), columns[0]
    if len(columns) == 2 and whole == [True, True]:  # noqa: PLR2004
        high, low = (quoted(column).cast("bigint") for column in columns)
        return F.shiftleft(high, _OFFSET_BITS) + low, " + ".join(columns)
    return F.xxhash64(*map(quoted, columns)), f"a hash of {', '.join(columns)}"


def _type_of(name: str, df: DataFrame, column: str, role: str) -> DataType:
    if column not in df.columns:
        there = ", ".join(df.columns)
        raise ConfigError(f"source {name}: {role} column {column} is missing; there are {there}")
    return df.schema[column].dataType


def union(sources: Sequence[Source]) -> DataFrame:
    """All sources as one stream, with a heartbeat; a struct column each if they are several."""
    names = [source.name for source in sources]
    twice = {name for name in names if names.count(name) > 1}
    if not sources or twice:
        raise ConfigError(f"sources must be one or more, each with a name of its own; got {names}")
    nested = len(sources) > 1
    rows = sources[0].rows(nested)
    for other in sources[1:]:
        rows = rows.unionByName(other.rows(nested), allowMissingColumns=True)
    return rows.unionByName(_heartbeat(sources[0].df), allowMissingColumns=True)


def _heartbeat(df: DataFrame) -> DataFrame:
    """No rows at all, but a batch at least every second, so that silence can be noticed."""
    beats = df.sparkSession.readStream.format("rate").option("numPartitions", 1).load()
    return beats.where("false").select(F.lit("").alias("_source"))
