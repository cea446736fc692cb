"""The meter application on bare Spark, as one writes it by hand: what a revise is measured against.

A batch's rows are complete and come in order of time. What reaches over the end of a batch needs
the rows of the last span, so they are kept in files.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from laxity.paper.metering import alerts, application


@dataclass
class ByHand:
    """Called with the rows of every batch (`meter`, `_event`, `kwh`), writes their alerts.

    Alerts up to `edge` are out; the rows after it are in the `kept` folder.
    """

    work: Path
    edge: datetime | None = None
    kept: str | None = None

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Evaluate what is complete, keep the last span."""
        rows = rows.persist()
        newest = rows.agg(F.max("_event")).first()
        if newest is not None and newest[0] is not None:
            edge = newest[0] - timedelta(microseconds=application().shape.span_us)
            self._evaluate(rows, edge, batch_id)
        rows.unpersist()

    def _evaluate(self, rows: DataFrame, edge: datetime, batch_id: int) -> None:
        event, known = F.col("_event"), rows
        if self.kept is not None:
            last = rows.sparkSession.read.schema(rows.schema).parquet(self.kept)
            known = rows.unionByName(last)
        found = alerts(known).where(event <= F.lit(edge))
        if self.edge is not None:
            found = found.where(event > F.lit(self.edge))
        found.write.parquet(f"{self.work}/out/batch_id={batch_id}")
        kept = f"{self.work}/kept/{batch_id}"
        known.where(event > F.lit(edge)).write.parquet(kept)
        self.edge, self.kept = edge, kept
