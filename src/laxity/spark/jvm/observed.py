"""Whether a job has read rows that are observed: Spark's own `Observation.get` waits for ever."""

from typing import Any

from pyspark.sql import Observation


def is_observed(observation: Observation) -> bool:
    """Whether the numbers are there; False, too, where no rows were ever observed with it."""
    java: Any = observation._jo
    return java is not None and bool(java.future().isCompleted())
