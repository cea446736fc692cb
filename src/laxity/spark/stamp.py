"""Give the rows of a micro-batch their arrival, and find those that lie too far in the future.

Both depend on when the batch began, which is another time in every batch. In the streaming query
Spark would write it into the Java code it generates, and compile that anew in every batch.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.spark.changing import changing
from laxity.spark.sources import OWN, Source, quoted

FUTURE = "in the future"


def stamps(rows: DataFrame, sources: Sequence[Source], start_us: int) -> dict[str, Column]:
    """The columns to fill in; rows without an arrival of their own came when the batch began."""
    any_time = F.coalesce(F.unix_micros("_event"), F.lit(0))
    start = F.timestamp_micros(changing(start_us, any_time))
    told = any(source.arrival is not None for source in sources)
    arrival = F.coalesce("_arrival", start) if told else start
    future = F.unix_micros("_event") > F.unix_micros(arrival) + _max_future_us(sources)
    return {
        "_arrival": arrival,
        "_dead": F.coalesce("_dead", F.when(future, FUTURE)),
        "_raw": F.coalesce("_raw", F.when(future, _json(rows, sources))),
    }


def _max_future_us(sources: Sequence[Source]) -> Column:
    """How far past its arrival a row may be; as a number, which is cheaper to add than a time."""
    bounds = {source.name: F.lit(source.terms.max_future_us) for source in sources}
    same = len({source.terms.max_future_us for source in sources}) == 1
    return bounds[sources[0].name] if same else _of_source(bounds)


def _json(rows: DataFrame, sources: Sequence[Source]) -> Column:
    """The row as it came from its source."""
    options = {"ignoreNullFields": "false"}
    if len(sources) > 1:
        return _of_source({one.name: F.to_json(F.col(one.name), options) for one in sources})
    user = [quoted(name) for name in rows.columns if name not in OWN]
    return F.to_json(F.struct(*user), options)


def _of_source(values: dict[str, Column]) -> Column:
    """The value of the row's source."""
    name, value = next(iter(values.items()))
    chosen = F.when(F.col("_source") == name, value)
    for name, value in list(values.items())[1:]:
        chosen = chosen.when(F.col("_source") == name, value)
    return chosen
