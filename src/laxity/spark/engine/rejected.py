"""Rows that an intake could not read or a stage rejected, on their way to their tables."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from laxity.spark.engine.branch import BranchResult
from laxity.spark.storage.rejected_rows import (
    DEAD,
    LATE,
    Posted,
    dead_rows,
    late_rows,
    post,
    refused_rows,
)
from laxity.spark.storage.state import Tables


def post_rejected(results: Sequence[BranchResult], tables: Tables, batch_id: int) -> Posted:
    """Plan to keep the rows that did not make it, if there are any."""
    dead: list[DataFrame] = []
    late: list[DataFrame] = []
    for result in results:
        if result.intake.stats.dead:
            dead.append(dead_rows(result.intake.rows(), batch_id))
        for one in (step.result for step in result.steps):
            if one.dead is not None and one.fates is not None and one.fates.dead:
                dead.append(refused_rows(one.dead(), batch_id))
            if one.late is not None and one.fates is not None and one.fates.late_rejected:
                late.append(late_rows(one.late(), batch_id))
    return Posted(post(tables, DEAD, dead), post(tables, LATE, late))
