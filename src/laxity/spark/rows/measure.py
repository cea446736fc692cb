"""Numbers of rows: in a job of their own, or on the way of one that reads them all anyway."""

import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from laxity.errors import EngineError
from laxity.spark.jvm.observed import is_observed

Numbers = dict[str, Any]
PATIENCE_S = 30.0  # Spark tells what a job observed a moment after its end


def measure(rows: DataFrame, columns: Sequence[Column | str]) -> Numbers:
    """The aggregates, in a job of their own."""
    (numbers,) = rows.agg(*map(_column, columns)).collect()
    return numbers.asDict()


def _column(given: Column | str) -> Column:
    """An aggregate, which may be SQL."""
    return F.expr(given) if isinstance(given, str) else given


class Riding:
    """Numbers that ride on whichever job reads the rows first, and are known once it has run.

    To ask for them earlier would mean to wait for a job that may never begin, so it is an error.
    Where no rows were ever observed there are no numbers: `{}`.
    """

    def __init__(self) -> None:
        self._observation = Observation()
        self._numbers: Numbers | None = None
        self._rides = False

    def on(self, rows: DataFrame, columns: Sequence[Column | str]) -> DataFrame:
        """The rows; who reads them all also takes these aggregates."""
        self._rides = True
        return rows.observe(self._observation, *map(_column, columns))

    def arrive(self) -> Numbers:
        """The numbers; the job has run, or it is said that none did."""
        until = time.monotonic() + PATIENCE_S
        while self._rides and not is_observed(self._observation):
            if time.monotonic() > until:
                raise EngineError("rows were to be counted on the way, but no job has read them")
            time.sleep(0.001)
        self._numbers = self._observation.get if self._rides else {}
        return self._numbers

    @property
    def numbers(self) -> Numbers:
        """What was counted."""
        if self._numbers is None:
            raise EngineError(
                "numbers that ride on a job were asked for before it has run: measure them in a "
                "job of their own, or ask in finish()"
            )
        return self._numbers


def observe(rows: DataFrame, columns: Sequence[Column | str]) -> tuple[DataFrame, Riding]:
    """Rows that are observed by whichever job reads them all, and the numbers to come."""
    riding = Riding()
    return riding.on(rows, columns), riding
