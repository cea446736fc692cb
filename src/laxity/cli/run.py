"""`laxity run`: start a stream of the user's, watch it, and say how it went."""

import json
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console

import laxity as lx
from laxity.cli.live import follow, plain_interrupts
from laxity.cli.load import load, settings_of
from laxity.cli.show import fates_table, print_stages
from laxity.core.metrics import totals
from laxity.core.report import Report
from laxity.errors import ConfigError
from laxity.spark.rows.wall import now_us

if TYPE_CHECKING:
    from laxity.spark.engine.sink import Sink


def run(
    target: str,
    *,
    settings: Annotated[tuple[str, ...], Parameter(name="--set", negative="")] = (),
    sink: str | None = None,
    checkpoint: str | None = None,
    trigger: str | None = None,
    name: str | None = None,
    drain: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Start a stream of your own and watch it until it ends, or you end it with Ctrl-C.

    Parameters
    ----------
    target
        MODULE:NAME, a stream or a function that gives one; modules of the working folder are found.
        The function gets a session as `spark`, if it takes one. It may also start the stream
        itself and give the query.
    settings
        NAME=VALUE, an argument of the function; as often as you like.
    sink
        Where results go: parquet:PATH, table:NAME or console.
    checkpoint
        Where state and accounts are kept.
    trigger
        A duration between batches, or available_now: work through what there is and end. As fast
        as possible by default.
    name
        What the pipeline is called; by default as in MODULE:NAME.
    drain
        With --trigger available_now: at its end let everything out, since the input has ended.
    as_json
        Print one JSON document at the end.
    """
    console = Console(stderr=True)
    began_us = now_us()
    given = settings_of(settings)
    terms = {"sink": sink, "checkpoint": checkpoint, "trigger": trigger, "name": name}
    if as_json and sink == "console":
        raise ConfigError("--json prints one document and nothing else: use another --sink")
    with console.status(f"loading {target}"):
        loaded = load(target, given)
    with plain_interrupts():
        with console.status(f"starting {target}"):
            query = _started(target, loaded, terms, drain)
        try:
            follow(query, query.contract.pipeline, None, console)
        except KeyboardInterrupt:
            console.print("stopping after the batch under way", highlight=False)
            query.stop()
    query.await_termination()
    reports = [report for report in query.reports() if report.started_us >= began_us]
    summary = summarise(target, query, reports)
    if as_json:
        print(json.dumps(summary))
    else:
        _print(summary, query, reports)
    return 0 if summary["kept"] else 1


def _started(
    target: str, given: "lx.Stream | lx.Query", terms: dict[str, str | None], drain: bool
) -> "lx.Query":
    """The query; a stream is started on the terms given."""
    if isinstance(given, lx.Query):
        said = [f"--{what}" for what, term in terms.items() if term is not None]
        said += ["--drain"] if drain else []
        if said:
            given.stop()
            raise ConfigError(
                f"{target} starts its stream itself, so {', '.join(said)} cannot be said here: "
                "give the stream and not the query, or leave that out"
            )
        return given
    sink, checkpoint = terms["sink"], terms["checkpoint"]
    if sink is None or checkpoint is None:
        raise ConfigError(
            f"{target} gives a stream: say where its results and its state go, like "
            "--sink parquet:out/results --checkpoint out/checkpoint"
        )
    return given.start(
        terms["name"] or target.partition(":")[2],
        sink=sink_of(sink),
        checkpoint=checkpoint,
        trigger=terms["trigger"],
        drain=drain,
    )


def sink_of(text: str) -> "Sink":
    """The sink that is meant.

    >>> str(sink_of("parquet:out/jams")), str(sink_of("table:jams")), str(sink_of("console"))
    ('parquet(out/jams)', 'table(jams)', 'console(20 rows)')
    """
    kind, _, where = text.partition(":")
    if kind == "parquet" and where:
        return lx.parquet(where)
    if kind == "table" and where:
        return lx.table(where)
    if text == "console":
        return lx.console()
    raise ConfigError(f"--sink must be parquet:PATH, table:NAME or console; got {text!r}")


def summarise(target: str, query: "lx.Query", reports: list[Report]) -> dict[str, Any]:
    """A run in a few numbers; `rows` are all since the pipeline began."""
    newest = query.report()
    return {
        "run": target,
        "pipeline": query.contract.pipeline,
        "checkpoint": query.contract.checkpoint,
        "batches": len(reports),
        "rows": newest.ledger.model_dump() if newest else {},
        "results": sum(report.n_results for report in reports),
        "stages": {label: told.model_dump() for label, told in totals(reports).items()},
        "kept": all(report.kept for report in reports),
        "batches_that_broke_a_promise": sum(not report.kept for report in reports),
    }


def _print(summary: dict[str, Any], query: "lx.Query", reports: list[Report]) -> None:
    console = Console()
    newest = query.report()
    if newest:
        console.print(fates_table(newest.ledger, "since the beginning"))
    print_stages(reports, console)
    if any(report.promises for report in reports):
        broken = summary["batches_that_broke_a_promise"]
        verdict = f"[red]broken[/] in {broken}" if broken else "[green]kept[/] in all"
        console.print(f"promises: {verdict} of {len(reports)} batches", highlight=False)
    console.print(
        f"batches {len(reports):,}, results {summary['results']:,}; "
        f"checkpoint {summary['checkpoint']}",
        highlight=False,
        soft_wrap=True,
    )
