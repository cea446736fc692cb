"""How much of a stream a micro-batch takes, in Spark's own words: it has them from 4.2 on.

Before, it asks a source for all there is, and does not say where the source was.
"""

from typing import TYPE_CHECKING

from laxity.spark.jvm.spark_version import spark_version

LIMITED = spark_version() >= (4, 2)

if TYPE_CHECKING or LIMITED:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:
    from dataclasses import dataclass

    class ReadLimit:
        """How much to read."""

    @dataclass
    class ReadAllAvailable(ReadLimit):
        """All there is."""

    @dataclass
    class ReadMaxRows(ReadLimit):
        """No more than so many rows."""

        max_rows: int

    class SupportsTriggerAvailableNow:
        """A reader that can be told that nothing more arrives."""


__all__ = [
    "LIMITED",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
]
