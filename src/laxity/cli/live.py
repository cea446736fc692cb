"""What runs live share: a folder for every demo, the batches on screen as they come, Ctrl-C."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
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


def follow(query: lx.Query, name: str, seconds: int | None, console: Console) -> None:
    """Show the batches until the query ends or the time, counted from the first batch, is up."""
    until = inf
    if seconds is not None:
        _first_batch(query)
        until = time.monotonic() + seconds
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while (left_s := until - time.monotonic()) > 0 and query.is_active:
            left = "running" if seconds is None else f"{seconds - left_s:.0f} of {seconds} s"
            live.update(watch(query.reports(last=SHOWN), f"{name} · {left}"), refresh=True)
            query.await_termination(min(1.0, left_s))


def _first_batch(query: lx.Query) -> None:
    """Wait for it, or until the query has ended."""
    until = time.monotonic() + FIRST_BATCH_S
    while not query.reports(last=1) and time.monotonic() < until and query.is_active:
        query.await_termination(0.1)


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Ctrl-C interrupts Python and nothing else.

    PySpark would cancel all jobs too, and with them the batch under way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
