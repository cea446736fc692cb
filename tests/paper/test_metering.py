"""The meter application on Spark is the simulator's."""

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from laxity.paper.metering import alerts
from laxity.sim.validation import meter_app
from laxity.sim.windows import Row
from support import revising
from support.readings import HOUR_US, START_US

pytestmark = pytest.mark.spark


def test_sim_equals_spark_on_the_alerts_of_meters(spark: SparkSession) -> None:
    """Counters that jump now and then, up and down, with readings missing."""
    rng = np.random.default_rng(3)
    rows = []
    for meter in range(4):
        hourly = np.where(rng.random(60) < 0.2, rng.choice([-400.0, 150.0, 300.0], 60), 1.5)
        for hour, kwh in enumerate(np.cumsum(hourly).tolist()):
            if rng.random() > 0.1:
                rows.append(Row(START_US + hour * HOUR_US, meter, kwh))
    table = spark.createDataFrame(rows, "us bigint, meter bigint, kwh double")
    found = alerts(table.withColumn("_event", F.timestamp_micros("us")))
    told = {
        (row["meter"], row["us"], row["kind"]): (row["kind"], row["value"])
        for row in found.withColumn("us", F.unix_micros("_event")).collect()
    }
    assert told == revising.oracle(meter_app(), rows)
    assert {kind for _, _, kind in told} == {"excess", "negative", "pattern"}
