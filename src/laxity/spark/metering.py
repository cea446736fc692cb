"""Validation of electricity meters: the application of TinTiN, §7, to be revised.

Meters send their counter every hour. The hourly consumption is the difference of two readings; it
must be positive and within what the fuses let through. A meter whose consumption is too large and
then negative within a day is about to break.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from laxity.spark.app import App

FUSE_KWH = 100.0
WINDOWS = [("2h", "1h"), ("24h", "1h")]


def alerts(rows: DataFrame) -> DataFrame:
    """Hours in `excess` of the fuses or `negative`, and meters that show the `pattern`.

    `value` is the consumption of the hour, or how many large values the pattern has.
    """
    hours = invalid(rows)
    kind = F.when(F.col("kwh") < 0, "negative").otherwise("excess")
    single = hours.select("meter", "_event", kind.alias("kind"), F.col("kwh").alias("value"))
    return single.unionByName(patterns(hours))


def invalid(rows: DataFrame) -> DataFrame:
    """Hours whose consumption is negative or more than the fuses let through."""
    hours = rows.groupBy("meter", F.window("_event", "2 hours", "1 hour").alias("hours")).agg(
        (F.max_by("kwh", "_event") - F.min_by("kwh", "_event")).alias("kwh"),
        F.count(F.lit(1)).alias("n"),
    )
    wrong = (F.col("kwh") < 0) | (F.col("kwh") > FUSE_KWH)
    whole = hours.where((F.col("n") > 1) & wrong)
    return whole.select("meter", F.col("hours")["start"].alias("_event"), "kwh")


def patterns(hours: DataFrame) -> DataFrame:
    """Days in which large consumption is followed by negative."""
    large = F.when(F.col("kwh") > 0, F.col("_event"))
    negative = F.when(F.col("kwh") < 0, F.col("_event"))
    days = hours.groupBy("meter", F.window("_event", "24 hours", "1 hour").alias("day")).agg(
        F.collect_list(large).alias("large"), F.max(negative).alias("last")
    )
    n_large = F.size(F.filter("large", lambda at: at < F.col("last"))).cast("double")
    found = days.withColumn("value", n_large).where("value > 0")
    day, kind = F.col("day")["start"].alias("_event"), F.lit("pattern").alias("kind")
    return found.select("meter", day, kind, "value")


def application() -> App:
    """The application, ready to be revised."""
    return App(alerts, windows=WINDOWS, kind="kind")
