"""`laxity top`: watch a query in the terminal."""

import json
import time
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.live import Live

from laxity.cli.show import watch
from laxity.errors import StateError
from laxity.spark.rows.wall import now_us
from laxity.spark.storage.checkpoint import read_identity
from laxity.spark.storage.files import Files, is_local, open_files
from laxity.spark.storage.lock import owner_of
from laxity.spark.storage.reports import read_reports


def top(
    checkpoint: str,
    *,
    batches: int = 15,
    every: float = 1.0,
    once: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Watch a running or finished query.

    Parameters
    ----------
    checkpoint
        The query's checkpoint folder.
    batches
        How many of the newest batches to show.
    every
        Seconds between two looks.
    once
        Look once and end; otherwise watch until the query ends.
    as_json
        Print the newest reports as one JSON document and end.
    """
    files = open_checkpoint(checkpoint)
    if as_json:
        reports = [one.model_dump(mode="json") for one in read_reports(files, batches)]
        print(json.dumps({"checkpoint": files.uri, "running": runs(files), "reports": reports}))
        return 0
    console = Console()
    identity = read_identity(files)
    name = identity.pipeline if identity else checkpoint
    with Live(console=console, auto_refresh=False) as live:
        while True:
            running = runs(files)
            state = "running" if running else "not running"
            newest = read_reports(files, batches)
            state += ", drained" if newest and newest[-1].drained else ""
            live.update(watch(newest, f"{name} · {state}"), refresh=True)
            if once or not running:
                return 0
            time.sleep(every)


def open_checkpoint(checkpoint: str) -> Files:
    """The checkpoint's folder, or a clear word that it is none; Spark only if it is remote."""
    spark = None
    if not is_local(checkpoint):
        from laxity.spark.api.session import session

        spark = session()
    files = open_files(checkpoint, spark)
    if read_identity(files) is None:
        raise StateError(f"{files.uri} is not a Laxity checkpoint: there is no laxity.json in it")
    return files


def runs(files: Files) -> bool:
    """Whether a live process holds the checkpoint."""
    owner = owner_of(files)
    return owner is not None and owner.lives(now_us())
