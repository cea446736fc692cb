"""How reports look in a terminal."""

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from laxity.cli.columns import NONE, Column, columns, lines
from laxity.core.ledger import Fates
from laxity.core.report import Report

REJECTED = ("late_rejected", "dead")  # shown if there are any
WHOLE = ("batch", "promises")  # are never folded
AT_THE_END = ("p50 s", "p99 s", "took s", "promises")


def fates_table(fates: Fates, title: str) -> Table:
    """Rows by fate."""
    table = Table(title=title, title_justify="left")
    table.add_column("fate")
    table.add_column("rows", justify="right")
    for name, rows in fates.model_dump(include=set(Fates.model_fields)).items():
        if name == "made" and not rows:
            continue  # no stage made rows that another took in
        table.add_row(name.replace("_", " "), f"{rows:,}", end_section=name == "rows_in")
    return table


class Batches:
    """The given batches, one a line.

    What the stages tell has columns of its own; those that do not fit follow in tables below.
    """

    def __init__(self, reports: Sequence[Report]) -> None:
        self._reports = reports
        self._stages = columns(reports)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        no_limit = options.update(max_width=10 * options.max_width)

        def fits(table: Table) -> bool:
            return Measurement.get(console, no_limit, table).maximum <= options.max_width

        whole = self._table([one for stage in self._stages for one in stage])
        if not self._stages or fits(whole):
            yield whole
            return
        yield self._table([])
        beside: list[Column] = []
        for stage in self._stages:
            if beside and not fits(self._numbers([*beside, *stage])):
                yield self._numbers(beside)
                beside = []
            beside += stage
        yield self._numbers(beside)

    def _table(self, stages: Sequence[Column]) -> Table:
        """The account of every batch, with the numbers of some stages."""
        rejected = [name for name in REJECTED if any(getattr(r.rows, name) for r in self._reports)]
        names = [
            *("batch", "rows in", "results", "held"),
            *(n.replace("_", "\n") for n in rejected),
        ]
        table = _headed([*names, *(one.header for one in stages), *AT_THE_END])
        table.add_column("idle")
        for report in self._reports:
            latency = report.latency
            table.add_row(
                str(report.batch_id),
                f"{report.rows.rows_in:,}",
                f"{report.n_results:,}",
                f"{report.ledger.held:,}",
                *(f"{getattr(report.rows, name):,}" for name in rejected),
                *(one.cell(report) for one in stages),
                f"{latency.p50_s:.2f}" if latency else NONE,
                f"{latency.p99_s:.2f}" if latency else NONE,
                f"{report.duration_s:.2f}",
                promises_text(report),
                ", ".join(report.idle),
            )
        return table

    def _numbers(self, stages: Sequence[Column]) -> Table:
        """What some stages tell of every batch."""
        table = _headed(["batch", *(one.header for one in stages)])
        for report in self._reports:
            table.add_row(str(report.batch_id), *(one.cell(report) for one in stages))
        return table


def _headed(names: Sequence[str]) -> Table:
    table = Table()
    for name in names:
        table.add_column(name, justify="right", overflow="fold", no_wrap=name in WHOLE)
    return table


def promises_text(report: Report) -> Text:
    """Whether the batch kept its promises."""
    if not report.promises:
        return Text("none stated", style="dim")
    return Text("kept", style="green") if report.kept else Text("broken", style="red")


def print_stages(reports: Sequence[Report], console: Console) -> None:
    """All that the stages tell of a run, a stage a line."""
    for line in lines(reports):
        console.print(line, highlight=False)


def watch(reports: Sequence[Report], headline: str) -> RenderableType:
    """A pipeline at a glance: the account of its rows and its newest batches."""
    if not reports:
        return Text(f"{headline} · no batch yet")
    return Group(
        Text(headline, style="bold"),
        fates_table(reports[-1].ledger, "since the beginning"),
        Batches(reports),
    )
