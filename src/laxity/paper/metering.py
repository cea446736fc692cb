"""Validation of electricity meters: the application of TinTiN, §7, to be revised.

Meters send their counter every hour. The hourly consumption is the difference of two readings; it
must be positive and within what the fuses let through. A meter whose consumption is too large and
then negative within a day is about to break.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from laxity.spark.revising.app import App

FUSE_KWH = 100.0
HOUR_US = "3600000000L"
WINDOWS = [("2h", "1h"), ("24h", "1h")]

LARGE_BEFORE_NEGATIVE = """filter(hours, h -> h.kwh > 0 AND h.at <
    array_max(transform(filter(hours, n -> n.kwh < 0), n -> n.at)))"""
ALERTS = """concat(
    transform(filter(hours, h -> h.at = day.start),
        h -> struct(IF(h.kwh < 0, 'negative', 'excess') AS kind, h.kwh AS value)),
    IF(size(large) > 0, array(struct('pattern' AS kind, CAST(size(large) AS DOUBLE) AS value)),
        array()))"""


def alerts(rows: DataFrame) -> DataFrame:
    """Hours in `excess` of the fuses or `negative`, and meters that show the `pattern`.

    `value` is the consumption of the hour, or how many large values the pattern has. Every invalid
    hour begins one of the days, so all are told from days, and the hours worked out once.
    """
    hours = invalid(rows).groupBy("meter", F.window("_event", "24 hours", "1 hour").alias("day"))
    days = hours.agg(F.expr("collect_list(struct(_event AS at, kwh))").alias("hours"))
    days = days.withColumn("large", F.expr(LARGE_BEFORE_NEGATIVE))
    return days.selectExpr("meter", "day.start AS _event", f"inline({ALERTS})")


def invalid(rows: DataFrame) -> DataFrame:
    """Hours whose consumption is negative or more than the fuses let through.

    The consumption is the difference of two readings, one of this hour and one of the next: of the
    rows in a window of two hours, of which every hour begins one.
    """
    hours = rows.selectExpr("meter", "kwh", f"unix_micros(_event) div {HOUR_US} AS hour")
    pairs = hours.selectExpr("*", "explode(array(hour - 1, hour)) AS first")
    used = pairs.groupBy("meter", "first").agg(
        F.expr("min(IF(hour > first, kwh, NULL)) - max(IF(hour = first, kwh, NULL)) AS kwh")
    )
    wrong = used.where(f"kwh < 0 OR kwh > {FUSE_KWH}")
    return wrong.selectExpr("meter", f"timestamp_micros(first * {HOUR_US}) AS _event", "kwh")


def application() -> App:
    """The application, ready to be revised."""
    return App(alerts, windows=WINDOWS, kind="kind")
