"""`laxity drain`: let everything out of a stream whose input has ended."""

from typing import Annotated

from cyclopts import Parameter

from laxity.cli.run import run
from laxity.cli.top import open_checkpoint
from laxity.spark.storage.checkpoint import read_identity


def drain(
    target: str,
    checkpoint: str,
    *,
    sink: str,
    settings: Annotated[tuple[str, ...], Parameter(name="--set", negative="")] = (),
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Work through what is available, then let everything out: no row held, every result final.

    Rows that a later run brings and that lie behind are late.

    Parameters
    ----------
    target
        MODULE:NAME, the stream as `laxity run` takes it.
    checkpoint
        The checkpoint it was run with.
    sink
        Where its results go: parquet:PATH, table:NAME or console.
    settings
        NAME=VALUE, an argument of the function; as often as you like.
    as_json
        Print one JSON document at the end.
    """
    identity = read_identity(open_checkpoint(checkpoint))
    return run(
        target,
        settings=settings,
        sink=sink,
        checkpoint=checkpoint,
        trigger="available_now",
        name=None if identity is None else identity.pipeline,
        drain=True,
        as_json=as_json,
    )
