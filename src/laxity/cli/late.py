"""`laxity late`: the rows that did not make it, and why."""

import json
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from laxity.cli.top import open_checkpoint


def late(
    checkpoint: str,
    *,
    kind: Literal["dead", "late"] = "dead",
    rows: int = 20,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Show dead letters (rows that cannot be processed) or rows rejected as too late.

    Parameters
    ----------
    checkpoint
        The query's checkpoint folder.
    kind
        `dead`: no timestamp, unparseable, too far in the future. `late`: past the lateness bound.
    rows
        How many rows to show.
    as_json
        Print one JSON document instead of tables.
    """
    open_checkpoint(checkpoint)
    from pyspark.sql import functions as F

    from laxity.spark.api.letters import read_letters

    letters = read_letters(checkpoint, kind)
    why = "_reason" if kind == "dead" else "_source"
    counts = {
        f"{row['_source']} · {row[why]}" if kind == "dead" else row["_source"]: row["count"]
        for row in letters.groupBy("_source", *({why} - {"_source"})).count().collect()
    }
    shown = letters.orderBy("batch_id", "_source", "_arrival", "_row").limit(rows)
    lines = shown.select(F.to_json(F.struct("*")).alias("line")).collect()
    found = [json.loads(row["line"]) for row in lines]
    if as_json:
        print(json.dumps({"kind": kind, "counts": counts, "rows": found}))
    else:
        _print(kind, counts, found, letters.columns)
    return 0


def _print(
    kind: str, counts: dict[str, int], found: list[dict[str, Any]], columns: list[str]
) -> None:
    console = Console()
    if not counts:
        console.print(f"no {kind} rows")
        return
    for what, count in sorted(counts.items()):
        console.print(f"{count:>10,}  {what}", highlight=False)
    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in found:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    console.print(table)
