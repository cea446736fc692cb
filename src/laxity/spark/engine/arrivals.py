"""Give the rows of a micro-batch their arrival, and find those that lie too far in the future.

Both depend on when the batch began, which is another time in every batch. In the streaming query
Spark would write it into the Java code it generates, and compile that anew in every batch.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from laxity.spark.engine.source import Source
from laxity.spark.rows.columns import EVENT_US, OWN, RANK, quoted_name
from laxity.spark.rows.runtime_literal import runtime_sql

FUTURE = "in the future"


def stamped(rows: DataFrame, sources: Sequence[Source], start_us: int) -> DataFrame:
    """The rows, dead ones known; those that tell no arrival came when the batch began."""
    start = f"timestamp_micros({runtime_sql(start_us, f'coalesce({EVENT_US}, 0L)')})"
    has_arrival = any(source.arrival is not None for source in sources)
    arrival = f"coalesce(_arrival, {start})" if has_arrival else start
    # as numbers, which are cheaper to add than times
    future = f"{EVENT_US} > unix_micros({arrival}) + {_max_future_us(sources)}"
    dead = f"coalesce(_dead, IF({future}, '{FUTURE}', NULL))"
    return rows.withColumns({"_arrival": F.expr(arrival), "_dead": F.expr(dead)})


def with_raw(rows: DataFrame, sources: Sequence[Source]) -> DataFrame:
    """Stamped rows, all dead ones with themselves as JSON."""
    return rows.withColumn("_raw", F.expr(f"IF(_dead = '{FUTURE}', {_json(rows, sources)}, _raw)"))


def _max_future_us(sources: Sequence[Source]) -> str:
    """How far past its arrival a row may be."""
    bounds = [f"{source.terms.max_future_us}L" for source in sources]
    return bounds[0] if len(set(bounds)) == 1 else _of_source(bounds)


def _json(rows: DataFrame, sources: Sequence[Source]) -> str:
    """The row as it came from its source."""
    if len(sources) > 1:
        return _of_source([_to_json(source.name) for source in sources])
    user = [quoted_name(name) for name in rows.columns if name not in OWN]
    return _to_json(f"struct({', '.join(user)})")


def _to_json(row: str) -> str:
    return f"to_json({row}, map('ignoreNullFields', 'false'))"


def _of_source(values: Sequence[str]) -> str:
    """The value of the row's source."""
    return f"CASE {RANK}{''.join(f' WHEN {n} THEN {one}' for n, one in enumerate(values))} END"
