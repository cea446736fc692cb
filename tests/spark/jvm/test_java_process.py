"""What Java promises of its own process."""

import logging
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laxity.spark.jvm.java_process import java_pid, mute_callbacks


@pytest.mark.spark
def test_java_tells_its_process_id(spark: SparkSession) -> None:
    pid = java_pid(spark)
    assert pid != os.getpid()
    assert b"org.apache.spark.deploy.SparkSubmit" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_errors_in_callbacks_are_not_told_twice() -> None:
    mute_callbacks()
    assert not logging.getLogger("py4j.clientserver").isEnabledFor(logging.ERROR)
