"""An embedded Spark with sensible settings, or the one that is already there."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from laxity.errors import EngineError
from laxity.spark.api.hadoop_defaults import empty_defaults
from laxity.spark.api.java import find_java
from laxity.spark.jvm.hadoop_files import omit_checksums
from laxity.spark.jvm.java_process import mute_callbacks
from laxity.spark.trace.source import TraceSource

_LOGGING = Path(__file__).with_name("log4j2.properties")
QUIET = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.sql.adaptive.enabled": "false",  # micro-batches are small: planning them once is enough
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",  # a job, for batches it is long
    "spark.sql.files.openCostInBytes": "65536",  # a file of some megabytes is work for all cores
    "spark.shuffle.compress": "false",  # rows that are read again at once, from the same machine
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # a number, not a Julian day
    "spark.buffer.pageSize": "2m",  # every sort and hash table takes a page, 64 MB by default
    "spark.sql.inMemoryColumnarStorage.compressed": "false",  # cached rows live for one batch
    "spark.sql.codegen.cache.maxEntries": "2000",  # a batch may need more than the usual 100
    "spark.sql.streaming.minBatchesToRetain": "10",  # Spark's own log; ours keeps the last few
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.ui.explainMode": "simple",  # every job begins with its plan as text
    "spark.sql.lightweightPlanChangeValidation": "false",  # a check after every step of planning
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # a stack trace for every expression
    "spark.ui.showConsoleProgress": "false",
    # rows at hand live for a batch: no collector that moves them about, and room while they do
    "spark.driver.extraJavaOptions": f"{QUIET} -XX:+UseParallelGC -XX:NewRatio=1",
}


def session(
    name: str = "laxity",
    *,
    cores: str = "*",
    memory: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """The active Spark session, or a new embedded one; either can read `format("laxity.trace")`.

    A session that is already active is used as it is: all parameters are for a new one.

    Parameters
    ----------
    name
        What Spark's own pages call it.
    cores
        How many cores it may use, as in `local[2]`.
    memory
        The size of its heap, like `"4g"`; a quarter of the machine's memory by default, between 1
        and 8 GB.
    conf
        Spark settings, which go before all others.

    Returns
    -------
    SparkSession
        A session of this process.

    Raises
    ------
    EngineError
        If there is no Java that will do, or Spark does not start; `laxity doctor` looks for why.
    """
    spark = SparkSession.getActiveSession() or _start(name, cores, memory, dict(conf or {}))
    spark.dataSource.register(TraceSource)
    return spark


def settings_of(memory: str | None = None) -> dict[str, str]:
    """All settings of an embedded session; what they name is made if it is not there."""
    return SETTINGS | {
        "spark.driver.memory": memory or default_memory(),
        "spark.driver.extraClassPath": str(empty_defaults()),  # for every job 700 settings fewer
    }


def _start(name: str, cores: str, memory: str | None, conf: dict[str, str]) -> SparkSession:
    mute_callbacks()
    os.environ["JAVA_HOME"] = str(find_java().home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = settings_of(memory) | conf
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise EngineError(f"Spark did not start: {error}; `laxity doctor` looks for why") from error
    omit_checksums(spark)
    return spark


def default_memory() -> str:
    """A quarter of the machine's memory, between 1 and 8 GB."""
    total_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{min(8, max(1, int(total_gb / 4)))}g"
