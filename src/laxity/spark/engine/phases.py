"""The named steps of a batch: timed, and shown in Spark's own UI."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


class Phases:
    """Times the phases of one batch and names the Spark jobs they run."""

    def __init__(self, spark: SparkSession, label: str) -> None:
        self._context = spark.sparkContext
        self._label = label
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Everything inside belongs to this phase."""
        self._context.setJobDescription(f"{self._label} · {name}")
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
