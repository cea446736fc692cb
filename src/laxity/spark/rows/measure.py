"""Numbers of rows: in a job of their own, or on the way of one that reads them all anyway."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Observation


def measure(rows: DataFrame, columns: Sequence[Column]) -> dict[str, Any]:
    """The aggregates, in a job of their own."""
    (numbers,) = rows.agg(*columns).collect()
    return numbers.asDict()


def observe(rows: DataFrame, columns: Sequence[Column]) -> tuple[DataFrame, Observation]:
    """Rows that are observed by whichever job reads them all; ask the Observation after it."""
    observation = Observation()
    return rows.observe(observation, *columns), observation
