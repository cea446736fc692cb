"""The Java process beside this one of Python."""

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_pid(spark: "SparkSession") -> int:
    """Its id: it outlives a killed Python for a moment, and could still write."""
    jvm: Any = spark._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())


def mute_callbacks() -> None:
    """Keep quiet about errors in functions that Java calls: Laxity tells them itself."""
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
