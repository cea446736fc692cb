"""`laxity paper`: the papers' tables and figures, run again."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from laxity.paper import FIGURES
from laxity.paper.result import Result, Row, Scale

SHOWN = 24  # rows in the terminal; the file has all

paper = App(name="paper", help="Run the papers' tables and figures again.")
AsJson = Annotated[bool, Parameter(name="--json")]


@paper.command(name="list")
def list_figures(*, as_json: AsJson = False) -> int:
    """List the figures there are.

    Parameters
    ----------
    as_json
        Print one JSON document instead of a table.
    """
    if as_json:
        print(json.dumps([{"id": name, "title": title} for name, title in FIGURES.items()]))
        return 0
    table = Table("id", "what it shows")
    for name, title in FIGURES.items():
        table.add_row(name, title)
    Console().print(table)
    return 0


@paper.command
def run(
    figure_id: str,
    *,
    scale: Scale = "quick",
    out: Path = Path("laxity-paper"),
    seed: int = 7,
    as_json: AsJson = False,
) -> int:
    """Run a figure, check what the paper says of it, and leave a result file and a picture.

    Parameters
    ----------
    figure_id
        One of the ids of `laxity paper list`.
    scale
        `quick` takes about half a minute, `full` is as large as in the paper.
    out
        The folder for `<id>.json` and `<id>.png`.
    seed
        The same seed gives the same input.
    as_json
        Print the result as one JSON document.
    """
    from laxity.paper.figure import draw, reproduce

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=1.0)

        def told(share: float, what: str) -> None:
            progress.update(task, completed=share, description=what)

        result = reproduce(figure_id, scale, seed, told)
    files = result.save(out), draw(result, out)
    if as_json:
        print(result.document())
    else:
        _print(result, files)
    return 0 if result.hold else 1


def _print(result: Result, files: tuple[Path, ...]) -> None:
    console = Console()
    console.print(f"[bold]{FIGURES[result.id]}[/] ({result.scale}, seed {result.seed})")
    console.print(_rows_table(result.rows))
    claims = Table("", "claim", "paper", "ours")
    for claim in result.claims:
        mark = "[green]✓[/]" if claim.holds else "[red]✗[/]"
        claims.add_row(mark, claim.claim, claim.paper, claim.ours)
    console.print(claims)
    for file in files:
        console.print(f"written: {file}", highlight=False, soft_wrap=True)


def _rows_table(rows: list[Row]) -> Table:
    more = len(rows) - SHOWN
    caption = f"{more} more rows in the result file" if more > 0 else None
    table = Table(box=box.SIMPLE_HEAD, padding=0, caption=caption)
    for name in rows[0] if rows else ():
        table.add_column(name.replace("_", "\n"), justify="right")
    for row in rows[:SHOWN]:
        table.add_row(*(_cell(value) for value in row.values()))
    return table


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1_000 else f"{value:,.0f}"  # noqa: PLR2004
    return f"{value:,}" if isinstance(value, int) else str(value)
