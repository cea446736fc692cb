"""Hand a batch's results to the sink, and count them on the way."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from laxity.spark.engine.batch_stats import arrival_columns, n_results
from laxity.spark.engine.branch import BranchResult
from laxity.spark.engine.sink import Sink
from laxity.spark.rows.measure import Numbers, measure, observe
from laxity.spark.rows.partitioning import in_order


@dataclass(frozen=True)
class Output:
    """Writes results; tells how many they are and when their rows arrived.

    `rides`: the results are the live rows themselves, and the intake is counted here. `dated`: they
    carry `_arrival`.
    """

    sink: Sink
    rides: bool
    dated: bool

    def write(self, result: BranchResult, batch_id: int) -> Numbers:
        """Write the results of a batch; nothing is left of one that has none."""
        rows, last = result.rows, result.last
        if last is not None and last.empty:
            return {"n_results": 0}
        if last is not None and last.order is not None:
            order = last.order
            rows = in_order(rows, order.by, order.n_rows, order.span_us)
        if not self.sink.one_pass:
            return self._write_cached(rows.persist(), batch_id)
        if self.rides:
            self.sink.write(rows, batch_id)
            numbers = result.intake.numbers | {"n_results": result.intake.stats.live}
        else:
            observed, riding = observe(rows, self._columns)
            self.sink.write(observed, batch_id)
            numbers = riding.arrive()
        if not numbers["n_results"]:
            self.sink.forget(batch_id)
        return numbers

    def _write_cached(self, rows: DataFrame, batch_id: int) -> Numbers:
        """The same for a sink that may read its rows any number of times."""
        try:
            numbers = measure(rows, self._columns)
            if numbers["n_results"]:
                self.sink.write(rows, batch_id)
            return numbers
        finally:
            rows.unpersist()

    @property
    def _columns(self) -> list[Column]:
        return [n_results(), *(arrival_columns(constant=False) if self.dated else ())]
