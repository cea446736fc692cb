"""What results say of themselves: their status, and which columns name them."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

FINAL, TENTATIVE, REVISED = "final", "tentative", "revised"  # values of `_status`
RETRACTED = "retracted"  # of a result that is no more
KEY = "laxity.key"  # metadata of a result's key and window columns; Parquet keeps it


def keyed(results: DataFrame, by: Sequence[str]) -> DataFrame:
    """Results whose key and window columns are marked, so that `latest` knows them."""
    marks = {name: {**results.schema[name].metadata, KEY: True} for name in by}
    return results.select(
        *(
            F.col(name).alias(name, metadata=marks[name]) if name in marks else F.col(name)
            for name in results.columns
        )
    )
