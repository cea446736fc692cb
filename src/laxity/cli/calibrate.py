"""`laxity calibrate`: record what slack does to a pipeline, for a tuned one to start from."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

import laxity as lx
from laxity.cli.load import named
from laxity.core.slack import SlackRule


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
    build: Callable[[SlackRule], lx.Stream] = named(pipeline)
    tried = [slack.strip() for slack in slacks.split(",") if slack.strip()]
    console = Console(stderr=True)
    with console.status("starting Spark") as status:
        lx.session("laxity calibrate")
        history = lx.calibrate(build, tried, seconds=seconds, out=out, told=status.update)
    Console().print(f"{sum(map(len, history.values()))} points of {len(tried)} slacks in {out}")
    Console().print(f'use it with lx.Tuned("6s", history="{out}")', highlight=False)
    return 0
