"""Answers at once, exact answers when late rows come: electricity meters, some of them days late.

Hourly consumption must be positive and within the fuses; alerts that late readings change are given
again. Run it after ./lx has set itself up: .venv/bin/python examples/03_revise.py
"""

from tempfile import mkdtemp

from pyspark.sql import functions as F

import laxity as lx
from laxity.paper.metering import application

spark = lx.session()
work = mkdtemp(prefix="laxity-example-")
trace = spark.readStream.format("laxity.trace").options(
    generator="laxity.sim.workload:meters", seed=3, rows_per_batch=6_000
)
for name, value in {"meters": 40, "days": 12, "broken": 8, "late_share": 0.05}.items():
    trace = trace.option(f"arg.{name}", value)
meters = lx.source("meters", trace.load(), event_time="event", arrival="arrival")
query = (
    lx.stream(meters)
    .revise(application(), by="meter", lateness="40d", period="1h", trigger="lazy")
    .start(
        "alerts",
        sink=lx.parquet(f"{work}/alerts"),
        checkpoint=f"{work}/checkpoint",
        trigger="available_now",
    )
)
query.await_termination()
for report in query.reports():
    print(f"batch {report.batch_id}: {report.decisions[0].why}; {report.stages['revise']}")
alerts = spark.read.parquet(f"{work}/alerts")
alerts.groupBy("_status").agg(F.count("*").alias("alerts")).show()
lx.latest(alerts).where("kind = 'pattern'").orderBy("meter", "_event").show(5)
