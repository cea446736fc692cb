"""A folder of Parquet files, written by one job."""

from pyspark.sql import DataFrame

from laxity.spark.storage.files import Files

_MARK_DONE = "mapreduce.fileoutputcommitter.marksuccessfuljobs"  # a commit says what is done


def write_parquet(rows: DataFrame, files: Files, folder: str) -> None:
    """Make the folder hold these rows and nothing else."""
    files.clear(folder)
    to = rows.write.mode("append").option(_MARK_DONE, "false")
    to.parquet(f"{files.uri}/{folder}")
