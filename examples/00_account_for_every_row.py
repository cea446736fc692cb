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


def flat(rows: DataFrame) -> DataFrame:
    area = F.coalesce("bus.area", "scats.area").alias("area")
    return rows.select("_event", "_arrival", area, "bus.delay_s", "scats.flow")


bus, scats = (
    lx.source(name, trace(name), event_time="event", arrival="arrival") for name in ("bus", "scats")
)
query = (
    lx.stream(bus, scats)
    .apply(flat)
    .start(
        "reports",
        sink=lx.parquet(f"{work}/reports"),
        checkpoint=f"{work}/checkpoint",
        trigger="available_now",
    )
)
query.await_termination()
report = query.report()
assert report is not None
print(report.ledger)
reports = spark.read.parquet(f"{work}/reports")
areas = reports.groupBy("area").agg(F.avg("delay_s").alias("delay_s"), F.avg("flow").alias("flow"))
areas.orderBy(F.desc("delay_s")).show(5)
