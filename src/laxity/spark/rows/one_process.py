"""Whether executors live in the driver: then nothing can be lost that the driver survives."""

import re

from pyspark.sql import SparkSession


def in_one_process(spark: SparkSession) -> bool:
    """Whether executors live in the driver; those of `local-cluster` do not."""
    return re.fullmatch(r"local(\[.*\])?", str(spark.sparkContext.master)) is not None
