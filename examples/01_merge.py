"""Two sources in one order, joined: jams where late buses and heavy traffic meet.

The buses' reports come late in bursts. A slack of 3 s bounds how long the sensors' wait for them.
Run it after ./lx has set itself up: .venv/bin/python examples/01_merge.py
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
    return reader.option("arg.rate_per_s", 250).option("rows_per_batch", 4_000).load()


bus, scats = (
    lx.source(name, trace(name), event_time="event", arrival="arrival") for name in ("bus", "scats")
)
query = (
    lx.merge(bus, scats, slack="3s")
    .join("bus", "scats", on="area", within="5s", when="bus.delay_s > 120 AND scats.flow > 40")
    .start(
        "jams",
        sink=lx.parquet(f"{work}/jams"),
        checkpoint=f"{work}/checkpoint",
        trigger="available_now",
    )
)
query.await_termination()
for report in query.reports():
    print(f"batch {report.batch_id}: {report.stages['merge']} {report.stages['join']}")
jams = spark.read.parquet(f"{work}/jams").groupBy("area").agg(F.count("*").alias("pairs"))
jams.orderBy(F.desc("pairs")).show(5)
