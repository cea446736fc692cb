"""How reports look in a terminal."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from laxity.core.ledger import Fates
from laxity.core.report import Report


def fates_table(fates: Fates, title: str) -> Table:
    """Rows by fate."""
    table = Table(title=title, title_justify="left")
    table.add_column("fate")
    table.add_column("rows", justify="right")
    for name, rows in fates.model_dump(include=set(Fates.model_fields)).items():
        table.add_row(name.replace("_", " "), f"{rows:,}", end_section=name == "rows_in")
    return table


def batches_table(reports: Sequence[Report]) -> Table:
    """The given batches, one a line."""
    table = Table()
    merged, revised = (any(s in r.stages for r in reports) for s in ("merge", "revise"))
    names = [
        "batch",
        "rows in",
        "results",
        "held",
        *(["slack s", "early", "late"] if merged else []),
        *(["due", "again", "kept"] if revised else []),
    ]
    for name in (*names, "p50 s", "p99 s", "took s", "promises"):
        table.add_column(name, justify="right")
    table.add_column("idle")
    for report in reports:
        latency = report.latency
        table.add_row(
            str(report.batch_id),
            f"{report.rows.rows_in:,}",
            f"{report.n_results:,}",
            f"{report.ledger.held:,}",
            *(_merge_cells(report.stages.get("merge", {})) if merged else ()),
            *(_revise_cells(report.stages.get("revise", {})) if revised else ()),
            f"{latency.p50_s:.2f}" if latency else "–",
            f"{latency.p99_s:.2f}" if latency else "–",
            f"{report.duration_s:.2f}",
            promises_text(report),
            ", ".join(report.idle),
        )
    return table


def _merge_cells(told: dict[str, Any]) -> tuple[str, str, str]:
    slack_s = told.get("slack_s")
    slack = "–" if slack_s is None else f"{slack_s:.2f}"
    return slack, f"{told.get('slack', 0):,}", f"{told.get('late', 0):,}"


def _revise_cells(told: dict[str, Any]) -> tuple[str, str, str]:
    """Late rows evaluated, results given again for them, and rows kept for those to come."""
    again = told.get("revised", 0) + told.get("retracted", 0)
    return f"{told.get('due', 0):,}", f"{again:,}", f"{told.get('kept', 0):,}"


def promises_text(report: Report) -> Text:
    """Whether the batch kept its promises."""
    if not report.promises:
        return Text("none stated", style="dim")
    return Text("kept", style="green") if report.kept else Text("broken", style="red")


def watch(reports: Sequence[Report], headline: str) -> RenderableType:
    """A pipeline at a glance: the account of its rows and its newest batches."""
    if not reports:
        return Text(f"{headline} · no batch yet")
    return Group(
        Text(headline, style="bold"),
        fates_table(reports[-1].ledger, "since the beginning"),
        batches_table(reports),
    )
