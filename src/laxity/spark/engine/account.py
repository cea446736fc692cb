"""Settle a batch's account: count what became of every row.

Dead and late rows are counted as they are written to their tables, the other fates by the stages;
where no stage counts, the rows that lived at the intake are the released ones. So a row that gets
lost between reading and writing, or in a stage, breaks the ledger's sum. A merge counts what it
holds, what is late and what it reads early, and takes the rest for ready: where its rows are the
results, as many must have been written.

The ledger follows a row until it enters a stage that makes other rows of it (`.apply`, `.join`).
Stages behind that still post their letters, and tell in the report what became of what they got.
What such a stage made and another merge takes in counts as rows in once more: a merge accounts for
every row it holds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from pyspark.sql import DataFrame

from laxity.core.ledger import Fates
from laxity.errors import ContractError
from laxity.spark.engine.branch_runner import BranchResult
from laxity.spark.engine.stage import Outcome
from laxity.spark.storage.rejected_rows import DEAD, LATE, dead_rows, late_rows, post, refused_rows
from laxity.spark.storage.state import Tables


@dataclass(frozen=True)
class Posted:
    """The letters of a batch; how many there are is known once they are written."""

    dead: Callable[[], int]
    late: Callable[[], int]


def post_letters(flows: Sequence[BranchResult], tables: Tables, batch_id: int) -> Posted:
    """Plan to write the rows that did not make it."""
    dead: tuple[list[DataFrame], list[DataFrame]] = ([], [])  # of the ledger's rows, and of others
    late: tuple[list[DataFrame], list[DataFrame]] = ([], [])
    for flow in flows:
        followed = len(_followed(flow))
        if flow.taken.intake.dead:
            dead[0].append(dead_rows(flow.taken.rows(), batch_id))
        for n, one in enumerate(flow.outcomes):
            beyond = n >= followed
            if one.dead is not None and one.fates is not None and one.fates().dead:
                dead[beyond].append(refused_rows(one.dead(), batch_id))
            if one.late is not None and one.fates is not None and one.fates().late_rejected:
                late[beyond].append(late_rows(one.late(), batch_id))
    return Posted(post(tables, DEAD, *dead), post(tables, LATE, *late))


def settle(flows: Sequence[BranchResult], posted: Posted, n_results: int) -> Fates:
    """What became of every row of the batch, once all is written."""
    _check_written(flows[-1], n_results)
    told = [one.fates() for flow in flows for one in _followed(flow) if one.fates is not None]
    query = flows[-1]
    whole = {flow.branch.name for flow in flows[:-1] if _passes_whole(flow)}
    came = [one for flow in flows for one in flow.taken.intake.came.items()]
    return Fates(
        rows_in=sum(n for name, n in came if name not in whole),
        released=sum(
            _released(flow) for flow in flows if flow is query or flow.branch.name not in whole
        ),
        held=sum(fates.held for fates in told),
        shed=sum(fates.shed for fates in told),
        sampled_out=sum(fates.sampled_out for fates in told),
        late_rejected=posted.late(),
        dead=posted.dead(),
    )


def _check_written(query: BranchResult, n_results: int) -> None:
    """Where released rows are the results, see that each was written."""
    last = query.outcomes[-1] if query.outcomes else None
    if last is None or not last.whole:
        return
    n_released = _released(query)
    if n_released != n_results:
        raise ContractError(
            f"{n_released} rows were released and {n_results} written; nothing was committed, so "
            "the batch can be run again"
        )


def _released(flow: BranchResult) -> int:
    """How many rows left the part of a branch where they are followed."""
    told = [one.fates().released for one in _followed(flow) if one.fates is not None]
    return told[-1] if told else flow.taken.intake.live


def _passes_whole(flow: BranchResult) -> bool:
    """Whether what a branch passes on to another is its own rows, not what it made of them."""
    return len(_followed(flow)) == len(flow.outcomes)


def _followed(flow: BranchResult) -> list[Outcome]:
    """What the stages made of the rows until one made other rows of them."""
    return list(takewhile(lambda outcome: outcome.fates is not None, flow.outcomes))
