"""A deadline instead of a slack: the tuner finds how long rows may wait for the slower source.

The buses' reports come late in bursts. Results are to be out within 15 s, whatever they do.
Run it, live for 40 s or as many as you say, after ./lx has set itself up:
.venv/bin/python examples/02_deadline.py [SECONDS]
"""

import sys
from tempfile import mkdtemp

from pyspark.sql import DataFrame

import laxity as lx

spark = lx.session()
work = mkdtemp(prefix="laxity-example-")
SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 40


def trace(name: str) -> DataFrame:
    reader = spark.readStream.format("laxity.trace").option("pace", "live")
    reader = reader.option("generator", f"laxity.sim.workload:{name}")
    return reader.option("arg.seconds", SECONDS + 30).load()


bus, scats = (
    lx.source(name, trace(name), event_time="event", arrival="arrival", idle_after="5s")
    for name in ("bus", "scats")
)
query = lx.merge(bus, scats, slack=lx.Tuned(deadline="15s")).start(
    "in-time", sink=lx.parquet(f"{work}/reports"), checkpoint=f"{work}/checkpoint"
)
query.await_termination(SECONDS)
query.stop()
for report in query.reports():
    merge, latency = report.stages["merge"], report.latency
    took = f"{latency.max_s:.1f} s at most" if latency else "no results"
    print(
        f"batch {report.batch_id}: slack {merge['slack_s']:.1f} s, {took}, {merge['slack']} early"
    )
    for decision in report.decisions[1:]:
        print(f"    {decision.what}: {decision.why}")
print("deadline kept in all batches:", all(report.kept for report in query.reports()))
