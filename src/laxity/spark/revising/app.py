"""An application that can be revised: windowed aggregates in series, as one function."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import MapType, StructType, TimestampType

from laxity.core.revise import Shape
from laxity.durations import Duration
from laxity.errors import ConfigError

OWN = ("_status", "_revision")  # what a revise adds to a result

Evaluation = Callable[[DataFrame], DataFrame]  # from rows to results


@dataclass(frozen=True)
class App:
    """A function of rows made of windowed aggregates, and what must be known of it.

    Parameters
    ----------
    fn
        Gets a stream's rows and gives results: the columns that name a key, the time of the result
        (the left edge of its last window) as `_event` or as Spark's `window`, and any others. It
        may read nothing but its rows.
    windows
        Size and advance of every aggregate, in their order.
    periodicity
        The longest period of time it looks at: `"7d"` for the day of the week.
    kind
        The column that tells apart several results of one key and time.
    own_query
        `fn` makes a streaming query with state of its own, and is run as one.

    Raises
    ------
    ConfigError
        If there are no windows, or one's advance is longer than its size.

    >>> app = App(lambda rows: rows, windows=[("2h", "1h"), ("24h", "24h")], kind="alert")
    >>> app.shape.span_us == 26 * 3_600_000_000  # a result depends on rows up to so much later
    True
    >>> app.naming(["meter"])
    ['meter', '_event', 'alert']
    """

    fn: Callable[[DataFrame], DataFrame]
    windows: Sequence[tuple[Duration, Duration]]
    periodicity: Duration | None = None
    kind: str | None = None
    own_query: bool = False

    def __post_init__(self) -> None:
        _ = self.shape

    @property
    def shape(self) -> Shape:
        """Its windows, checked."""
        return Shape.of(self.windows, self.periodicity)

    @property
    def name(self) -> str:
        """How the contract calls it."""
        return getattr(self.fn, "__name__", type(self.fn).__name__)

    def naming(self, by: Sequence[str]) -> list[str]:
        """The columns that name a result."""
        return [*by, "_event", *([self.kind] if self.kind else [])]

    def results(self, rows: DataFrame, by: Sequence[str]) -> DataFrame:
        """The results on these rows: what names them first, then their values.

        A result that is retracted has no values, so each of them may be null.
        """
        given = self.fn(rows)
        if "_event" not in given.columns:
            given = given.withColumn("_event", F.col("window")["start"]).drop("window")
        names = self.naming(by)
        values = [name for name in given.columns if name not in names]
        return given.select(*names, *(F.when(F.lit(True), F.col(v)).alias(v) for v in values))

    def check(self, empty: DataFrame, by: Sequence[str]) -> None:
        """Refuse a function that does not fit the stream, before anything starts."""
        there = ", ".join(empty.columns)
        try:
            given = self.fn(empty)
        except Exception as error:
            raise ConfigError(
                f"revise({self.name}) fails on the stream's columns ({there}): {error}"
            ) from error
        if not isinstance(given, DataFrame):
            raise ConfigError(
                f"revise({self.name}) must give a DataFrame, got {type(given).__name__}"
            )
        columns = ", ".join(given.columns)
        timed = "_event" in given.columns or isinstance(_kind(given, "window"), StructType)
        wanted = [*by, *([self.kind] if self.kind else [])]
        missing = [name for name in wanted if name not in given.columns]
        if missing or not timed:
            what = ", ".join(missing) or "_event or window, the time of a result"
            raise ConfigError(f"revise({self.name}) must give {what}; it gives {columns}")
        taken = [name for name in OWN if name in given.columns]
        if taken:
            raise ConfigError(f"revise({self.name}) gives {taken[0]}, which revise adds: rename it")
        maps = [name for name in given.columns if isinstance(_kind(given, name), MapType)]
        if maps:
            raise ConfigError(
                f"revise({self.name}) gives {maps[0]}, a map, which cannot be compared: use columns"
            )
        self._check_types(self.results(empty, by), empty, by)

    def _check_types(self, results: DataFrame, rows: DataFrame, by: Sequence[str]) -> None:
        for name in by:
            kinds = [_kind(one, name) for one in (rows, results)]
            if kinds[0] != kinds[1]:
                raise ConfigError(f"revise({self.name}) changes the type of {name}: leave it")
        if not isinstance(_kind(results, "_event"), TimestampType):
            raise ConfigError(f"revise({self.name}) gives an _event that is no timestamp: cast it")


def _kind(rows: DataFrame, column: str) -> object:
    return rows.schema[column].dataType if column in rows.columns else None
