"""Settle a batch's account: count what became of every row.

Dead and late rows are counted as they are written to their tables, the other fates by the stages;
where no stage counts, the rows that lived at the intake are the released ones. So a row that gets
lost between reading and writing, or in a stage, breaks the ledger's sum.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame

from laxity.core.ledger import Fates
from laxity.spark.intake import Intake
from laxity.spark.letters import DEAD, LATE, dead_rows, late_rows, post
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
    dead = late = _none
    if intake.dead:
        dead = post(tables, DEAD, dead_rows(rows, batch_id))
    rejecting = [one for one in outcomes if one.late is not None and one.fates is not None]
    if any(one.fates().late_rejected for one in rejecting if one.fates):
        rejected = [late_rows(one.late, batch_id) for one in rejecting if one.late is not None]
        late = post(tables, LATE, reduce(DataFrame.unionByName, rejected))
    return Posted(dead, late)


def settle(intake: Intake, outcomes: Sequence[Outcome], posted: Posted) -> Fates:
    """What became of every row of the batch, once all is written."""
    told = [outcome.fates() for outcome in outcomes if outcome.fates is not None]
    return Fates(
        rows_in=intake.rows_in,
        released=told[-1].released if told else intake.live,
        held=sum(fates.held for fates in told),
        shed=sum(fates.shed for fates in told),
        sampled_out=sum(fates.sampled_out for fates in told),
        late_rejected=posted.late(),
        dead=posted.dead(),
    )


def _none() -> int:
    return 0
