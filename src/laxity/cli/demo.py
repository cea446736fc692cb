"""`laxity demo`: a live pipeline on embedded Spark that ends by itself."""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

import laxity as lx
from laxity.cli import meters
from laxity.cli.live import FIRST_BATCH_S, follow, new_folder
from laxity.cli.plot import plot
from laxity.cli.show import fates_table, print_stages
from laxity.core.merge import Read
from laxity.core.report import Report
from laxity.core.slack import SlackRule, parse_slack
from laxity.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE = "15s"
JAMMED = "bus.delay_s > 120 AND scats.flow > 40"


def demo(
    which: Literal["traffic", "meters"] = "traffic",
    *,
    seconds: int = 60,
    slack: str = f"tuned:{DEADLINE}",
    seed: int = 7,
    out: Path = Path("laxity-demo"),
    no_web: Annotated[bool, Parameter(negative="")] = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Run an application live, and account for every row.

    traffic: 911 buses and 3,504 road sensors deliver 500 reports a second each; the buses' come
    late in bursts. They are merged in order and joined by area within 5 s, to find jams.
    meters: 500 electricity meters send their counters every hour, some weeks late; invalid
    consumption and meters about to break are told at once, and again when late readings come.
    Results and a report file are left in the output folder.

    Parameters
    ----------
    which
        The application to run.
    seconds
        How long the pipeline runs.
    slack
        For traffic, how long the merge waits for the slower source: tuned:15s finds the slack that
        keeps that deadline; or a duration like 2s, or one of none, max-delay, tcp, quantile.
    seed
        The same seed gives the same reports.
    out
        Where results, checkpoint and report go, in a new folder for every run.
    no_web
        Stay in the terminal. There is no web page yet, so this is always so.
    as_json
        Print the summary as one JSON document.
    """
    if seconds < 1:
        raise ConfigError(f"--seconds must be at least 1, got {seconds}")
    parse_slack(slack)
    folder = new_folder(out)
    console = Console(stderr=True)
    if which == "meters":
        summary, reports = _meters(folder, seconds, seed, console)
    else:
        summary, reports = _traffic(folder, seconds, seed, slack, console)
    (folder / "report.json").write_text(json.dumps(summary, indent=2))
    if as_json:
        print(json.dumps(summary))
    elif which == "meters":
        meters.show(summary, reports)
    else:
        _print(summary, reports)
    return 0 if summary["kept"] else 1


def _meters(
    folder: Path, seconds: int, seed: int, console: Console
) -> tuple[dict[str, Any], list[Report]]:
    with console.status("starting Spark"):
        spark = lx.session("laxity demo")
    query = meters.meters(spark, folder, seed)
    follow(query, "meters", seconds, console)
    query.stop()
    reports = query.reports()
    return meters.summarise(spark, reports, folder), reports


def _traffic(
    folder: Path, seconds: int, seed: int, slack: str, console: Console
) -> tuple[dict[str, Any], list[Report]]:
    with console.status("starting Spark"), tempfile.TemporaryDirectory() as spare:
        spark = lx.session("laxity demo")
        warm_up = traffic(spark, Path(spare), seconds=1, seed=seed, slack=slack, pace="flood")
        warm_up.await_termination()
    lasts = seconds + FIRST_BATCH_S
    query = traffic(spark, folder, seconds=lasts, seed=seed, slack=slack, pace="live")
    follow(query, "traffic", seconds, console)
    query.stop()
    reports = query.reports()
    if reports:
        plot(reports, folder / "report.png")
    return summarise(reports, folder), reports


def traffic(
    spark: "SparkSession", folder: Path, *, seconds: int, seed: int, slack: str, pace: str
) -> lx.Query:
    """The application as a query."""
    return jams(spark, parse_slack(slack), seconds=seconds, seed=seed, pace=pace).start(
        "traffic" if pace == "live" else "warm-up",
        sink=lx.parquet(str(folder / "results")),
        checkpoint=str(folder / "checkpoint"),
        trigger="available_now" if pace == "flood" else None,
    )


def calibrated(slack: SlackRule) -> lx.Stream:
    """The application as `laxity calibrate` runs it."""
    return jams(lx.session(), slack, seconds=FIRST_BATCH_S + 600, seed=7, pace="live")


def jams(
    spark: "SparkSession", slack: SlackRule, *, seconds: int, seed: int, pace: str
) -> lx.Stream:
    """Congestion: a bus runs late where a sensor counts heavy traffic, within 5 s."""
    sources = []
    for name in ("bus", "scats"):
        trace = spark.readStream.format("laxity.trace").options(
            generator=f"laxity.sim.workload:{name}", seed=seed, pace=pace
        )
        rows = trace.option("arg.seconds", seconds).load()
        sources.append(
            lx.source(name, rows, event_time="event", arrival="arrival", idle_after="5s")
        )
    tuned = isinstance(slack, lx.Tuned)
    merged = lx.merge(
        *sources,
        slack=slack,
        hold_at_most=None if tuned else DEADLINE,
        deadline=None if tuned else DEADLINE,
    )
    return merged.join("bus", "scats", on="area", within="5s", when=JAMMED)


def summarise(reports: list[Report], folder: Path) -> dict[str, Any]:
    """A run in a few numbers."""
    measured = [report.latency for report in reports if report.latency]
    return {
        "demo": "traffic",
        "batches": len(reports),
        "rows": reports[-1].ledger.model_dump() if reports else {},
        "results": sum(report.n_results for report in reports),
        "reads": {mark: _total(reports, "merge", mark) for mark in Read},
        "pairs": {name: _total(reports, "join", name) for name in ("compared", "missed")},
        "latency": {
            "p50_s": sorted(one.p50_s for one in measured)[len(measured) // 2],
            "p99_s": max(one.p99_s for one in measured),
            "max_s": max(one.max_s for one in measured),
        }
        if measured
        else None,
        "deadline_s": reports[0].promises[0].bound if reports else None,
        "inside": inside(reports),
        "kept": bool(reports) and all(report.kept for report in reports),
        "batches_over_deadline": sum(not report.kept for report in reports),
        "folder": str(folder),
    }


def inside(reports: list[Report]) -> float | None:
    """The share of results that were surely inside the deadline, as far as percentiles tell."""
    sure = 0.0
    for report in reports:
        if (latency := report.latency) is not None and report.promises:
            seen = [(latency.max_s, 1.0), (latency.p99_s, 0.99), (latency.p50_s, 0.5)]
            kept = [share for s, share in seen if s <= report.promises[0].bound]
            sure += max(kept, default=0.0) * report.n_results
    n_results = sum(report.n_results for report in reports)
    return sure / n_results if n_results else None


def _total(reports: list[Report], stage: str, number: str) -> int:
    return sum(report.stages[stage][number] for report in reports)


def _print(summary: dict[str, Any], reports: list[Report]) -> None:
    console = Console()
    if not reports:
        console.print("no batch was finished in that time; try more --seconds")
        return
    console.print(fates_table(reports[-1].ledger, "rows by fate"))
    print_stages(reports, console)
    if latency := summary["latency"]:
        console.print(
            f"latency: median {latency['p50_s']:.2f} s, p99 of the worst batch "
            f"{latency['p99_s']:.2f} s, max {latency['max_s']:.2f} s"
        )
    broken = summary["batches_over_deadline"]
    verdict = "[red]broken[/] in {broken}" if broken else "[green]kept[/] in all"
    deadline_s, verdict = summary["deadline_s"], verdict.format(broken=broken)
    console.print(f"deadline {deadline_s:g} s: {verdict} of {len(reports)} batches")
    console.print(f"{summary['results']:,} jams, report.json and report.png in {summary['folder']}")
