"""Settle a batch's account: count what became of every row.

Dead and late rows are counted as they are written to their tables, the other fates by the stages;
where no stage counts, the rows that lived at the intake are the released ones. So a row that gets
lost between reading and writing, or in a stage, breaks the ledger's sum.

The ledger follows a row until it enters a stage that makes other rows of it (`.apply`, `.join`).
Stages behind that still post their letters, and tell in the report what became of what they got.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from pyspark.sql import DataFrame

from laxity.core.ledger import Fates
from laxity.spark.intake import Intake
from laxity.spark.letters import DEAD, LATE, dead_rows, late_rows, post, refused_rows
from laxity.spark.stage import Outcome
from laxity.spark.state import Tables


@dataclass(frozen=True)
class Posted:
    """The letters of a batch; how many there are is known once they are written."""

    dead: Callable[[], int]
    late: Callable[[], int]


def post_letters(
    rows: DataFrame, intake: Intake, outcomes: Sequence[Outcome], tables: Tables, batch_id: int
) -> Posted:
    """Plan to write the rows that did not make it."""
    followed = len(_followed(outcomes))
    dead: tuple[list[DataFrame], list[DataFrame]] = ([], [])  # of the ledger's rows, and of others
    late: tuple[list[DataFrame], list[DataFrame]] = ([], [])
    if intake.dead:
        dead[0].append(dead_rows(rows, batch_id))
    for n, one in enumerate(outcomes):
        beyond = n >= followed
        if one.dead is not None and one.fates is not None and one.fates().dead:
            dead[beyond].append(refused_rows(one.dead, batch_id))
        if one.late is not None and one.fates is not None and one.fates().late_rejected:
            late[beyond].append(late_rows(one.late, batch_id))
    return Posted(post(tables, DEAD, *dead), post(tables, LATE, *late))


def settle(intake: Intake, outcomes: Sequence[Outcome], posted: Posted) -> Fates:
    """What became of every row of the batch, once all is written."""
    told = [outcome.fates() for outcome in _followed(outcomes) if outcome.fates is not None]
    return Fates(
        rows_in=intake.rows_in,
        released=told[-1].released if told else intake.live,
        held=sum(fates.held for fates in told),
        shed=sum(fates.shed for fates in told),
        sampled_out=sum(fates.sampled_out for fates in told),
        late_rejected=posted.late(),
        dead=posted.dead(),
    )


def _followed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """What the stages made of the rows until one made other rows of them."""
    return list(takewhile(lambda outcome: outcome.fates is not None, outcomes))
