"""`laxity calibrate`: record what slack does to a pipeline, for a tuned one to start from."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from rich.console import Console

import laxity as lx
from laxity.core.slack import SlackRule
from laxity.errors import ConfigError


def calibrate(
    pipeline: str = "laxity.cli.demo:calibrated",
    *,
    slacks: str = "1s,4s,8s,12s",
    seconds: float = 20,
    out: Path = Path("history.json"),
) -> int:
    """Run a pipeline at several slacks and save what was seen, for `lx.Tuned(history=...)`.

    Parameters
    ----------
    pipeline
        MODULE:FUNCTION; the function gets a slack rule and gives a stream made with
        `lx.merge(..., slack=rule)`. By default the traffic demo.
    slacks
        The slacks to try, with commas between them.
    seconds
        How long each run lasts.
    out
        The file the history goes to.
    """
    build = _build(pipeline)
    tried = [slack.strip() for slack in slacks.split(",") if slack.strip()]
    console = Console(stderr=True)
    with console.status("starting Spark") as status:
        lx.session("laxity calibrate")
        history = lx.calibrate(build, tried, seconds=seconds, out=out, told=status.update)
    Console().print(f"{sum(map(len, history.values()))} points of {len(tried)} slacks in {out}")
    Console().print(f'use it with lx.Tuned("6s", history="{out}")', highlight=False)
    return 0


def _build(name: str) -> Callable[[SlackRule], lx.Stream]:
    """The function that a MODULE:FUNCTION names; modules of the working folder are found too."""
    module, _, function = name.partition(":")
    if not function:
        raise ConfigError(f"pipeline must be MODULE:FUNCTION, got {name!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Callable[[SlackRule], lx.Stream] = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"pipeline {name}: {error}") from error
    return found
