"""What all demos share: a folder for every run, and the batches on screen as they come."""

import time
from pathlib import Path

from rich.console import Console
from rich.live import Live

import laxity as lx
from laxity.cli.show import watch

SHOWN = 8  # batches on screen
FIRST_BATCH_S = 60  # how long to wait for it


def new_folder(out: Path) -> Path:
    """A folder that no run has used yet."""
    taken = {path.name for path in out.glob("run-*")} if out.exists() else set()
    number = next(n for n in range(1, len(taken) + 2) if f"run-{n}" not in taken)
    folder = out / f"run-{number}"
    folder.mkdir(parents=True)
    return folder


def follow(query: lx.Query, name: str, seconds: int, console: Console) -> None:
    """Show the batches until the query ends or the time, counted from the first batch, is up."""
    until = time.monotonic() + FIRST_BATCH_S
    while not query.reports(last=1) and time.monotonic() < until and query.is_active:
        query.await_termination(0.1)
    until = time.monotonic() + seconds
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while (left_s := until - time.monotonic()) > 0 and query.is_active:
            headline = f"{name} · {seconds - left_s:.0f} of {seconds} s"
            live.update(watch(query.reports(last=SHOWN), headline), refresh=True)
            query.await_termination(min(1.0, left_s))
