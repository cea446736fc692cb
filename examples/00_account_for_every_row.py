"""Two sources in one query; every row accounted for.

Run it after ./lx has set itself up: .venv/bin/python examples/00_account_for_every_row.py
"""

from tempfile import mkdtemp

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import laxity as lx

spark = lx.session()
work = mkdtemp(prefix="laxity-example-")


def trace(name: str) -> DataFrame:
    reader = spark.readStream.format("laxity.trace")
    reader = reader.option("generator", f"laxity.sim.workload:{name}").option("arg.seconds", 20)
    return reader.option("rows_per_batch", 4_000).load()


def by_area(rows: DataFrame) -> DataFrame:
    area = F.coalesce("bus.area", "scats.area").alias("area")
    return rows.groupBy(area, F.window("_event", "5 seconds")).agg(
        F.avg("bus.delay_s").alias("bus_delay_s"),
        F.avg("scats.flow").alias("flow"),
        F.max("_arrival").alias("_arrival"),
    )


bus, scats = (
    lx.source(name, trace(name), event_time="event", arrival="arrival") for name in ("bus", "scats")
)
query = (
    lx.stream(bus, scats)
    .apply(by_area)
    .start(
        "areas",
        sink=lx.parquet(f"{work}/areas"),
        checkpoint=f"{work}/checkpoint",
        trigger="available_now",
    )
)
query.await_termination()
report = query.report()
assert report is not None
print(report.ledger)
spark.read.parquet(f"{work}/areas").orderBy(F.desc("bus_delay_s")).show(5, truncate=False)
