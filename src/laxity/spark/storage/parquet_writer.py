"""A folder of Parquet files, written by one job."""

from pyspark.sql import DataFrame

from laxity.spark.storage.files import Files
from laxity.spark.storage.written import visible_rows, write_whole

_MARK_DONE = "mapreduce.fileoutputcommitter.marksuccessfuljobs"  # a commit says what is done


def write_parquet(rows: DataFrame, files: Files, folder: str) -> None:
    """Make the folder hold these rows and nothing else; see that it does, on a cluster."""
    files.clear(folder)
    where = f"{files.uri}/{folder}"

    def write(rows: DataFrame) -> None:
        rows.write.mode("append").option(_MARK_DONE, "false").parquet(where)

    write_whole(rows, where, write, lambda: visible_rows(rows, files, folder))
