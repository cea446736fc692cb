"""`laxity demo meters`: electricity meters validated at once, and again when late readings come."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

import laxity as lx
from laxity.cli.show import fates_table, print_stages
from laxity.core.report import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METERS = 500
DAYS = 60
A_DAY = 24 * METERS  # readings
LATENESS = "40d"


def meters(spark: "SparkSession", folder: Path, seed: int) -> lx.Query:
    """The application as a query: a day of readings a batch, as fast as they can be taken."""
    from laxity.paper.metering import application

    reader = spark.readStream.format("laxity.trace").options(
        generator="laxity.sim.workload:meters", seed=seed, rows_per_batch=A_DAY
    )
    given = {"meters": METERS, "days": DAYS, "lost_share": 0.002, "broken": 20}
    for name, value in given.items():
        reader = reader.option(f"arg.{name}", value)
    source = lx.source("meters", reader.load(), event_time="event", arrival="arrival")
    revised = lx.stream(source).revise(
        application(), by="meter", lateness=LATENESS, period="1h", trigger="lazy"
    )
    return revised.start(
        "meters",
        sink=lx.parquet(str(folder / "results")),
        checkpoint=str(folder / "checkpoint"),
        trigger="available_now",
    )


def summarise(spark: "SparkSession", reports: list[Report], folder: Path) -> dict[str, Any]:
    """A run in a few numbers."""
    told = [report.stages["revise"] for report in reports]
    alerts: dict[str, int] = {}
    if any(report.n_results for report in reports):
        newest = lx.latest(spark.read.parquet(str(folder / "results")))
        alerts = {row["kind"]: row["count"] for row in newest.groupBy("kind").count().collect()}
    return {
        "demo": "meters",
        "batches": len(reports),
        "rows": reports[-1].ledger.model_dump() if reports else {},
        "alerts": dict(sorted(alerts.items())),
        "results": {
            name: sum(one[name] for one in told) for name in ("first", "revised", "retracted")
        },
        "late": sum(one["late"] for one in told),
        "kept_rows": told[-1]["kept"] if told else 0,
        "final_us": told[-1]["final_us"] if told else None,
        "seconds": sum(report.duration_s for report in reports),
        "kept": bool(reports) and all(report.kept for report in reports),
        "folder": str(folder),
    }


def show(summary: dict[str, Any], reports: list[Report]) -> None:
    """The summary for a person."""
    console = Console()
    if not reports:
        console.print("no batch was finished in that time; try more --seconds")
        return
    console.print(fates_table(reports[-1].ledger, "rows by fate"))
    table = Table(title="alerts, as they stand now", title_justify="left")
    for name in ("kind", "alerts"):
        table.add_column(name)
    for kind, n_alerts in summary["alerts"].items():
        table.add_row(kind, f"{n_alerts:,}")
    console.print(table)
    print_stages(reports, console)
    n_rows = summary["rows"]["rows_in"]
    rate = n_rows / max(summary["seconds"], 1e-9)
    console.print(f"{n_rows:,} readings, {rate:,.0f} a second; report.json in {summary['folder']}")
