"""A folder of Parquet files, written by one job, and seen to be there.

On a cluster every executor writes its part on the machine it runs on. Where a folder is on a disk
that machines do not share, the parts of all but the driver's own are lost, and Spark says nothing.
So what was written is counted where the driver sees it: Parquet files tell their rows in their
footers. In one process there is one disk, and nothing to see.
"""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from laxity.errors import EngineError
from laxity.spark.rows.measure import observe
from laxity.spark.rows.one_process import in_one_process
from laxity.spark.storage.files import Files, is_local

_MARK_DONE = "mapreduce.fileoutputcommitter.marksuccessfuljobs"  # a commit says what is done


def write_parquet(rows: DataFrame, files: Files, folder: str) -> None:
    """Make the folder hold these rows and nothing else; see that it does, on a cluster."""
    files.clear(folder)
    where = f"{files.uri}/{folder}"

    def write(rows: DataFrame) -> None:
        rows.write.mode("append").option(_MARK_DONE, "false").parquet(where)

    write_whole(rows, where, write, lambda: visible_rows(rows, files, folder))


def write_whole(
    rows: DataFrame, where: str, write: Callable[[DataFrame], object], visible: Callable[[], int]
) -> None:
    """Write rows; on a cluster, refuse to go on if fewer are `visible` than were written."""
    if in_one_process(rows.sparkSession):
        write(rows)
        return
    counted, riding = observe(rows, [F.count(F.lit(1)).alias("n_written")])
    write(counted)
    n_written, n_visible = int(riding.arrive()["n_written"]), visible()
    if n_visible < n_written:
        raise EngineError(
            f"{n_written} rows were written to {where}, and {n_visible} are to be seen from the "
            "driver: the executors do not share that folder with it. Nothing was committed; use a "
            "folder that all machines share (HDFS, an object store, a network disk)"
        )


def visible_rows(rows: DataFrame, files: Files, folder: str) -> int:
    """How many rows like these lie in a folder of Parquet files, as seen from the driver."""
    parts = [name for name in files.names(folder) if name.endswith(".parquet")]
    uri = f"{files.uri}/{folder}"
    if is_local(uri):
        root = Path(unquote(urlparse(uri).path))
        return sum(pq.read_metadata(root / name).num_rows for name in parts)
    return rows.sparkSession.read.schema(rows.schema).parquet(uri).count() if parts else 0
