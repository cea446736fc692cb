"""A system from outside: a stage with a table, a promise, a report and metrics of its own."""

from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark.sql import DataFrame

from laxity.contract import PromiseTerms
from laxity.core.ledger import Fates
from laxity.core.stage_report import StageReport, shown
from laxity.registry import System, register
from laxity.spark.engine.draft import Draft
from laxity.spark.engine.planned import Counts, Needs, Planned, StageResult
from laxity.spark.engine.stage import BatchContext, Stage
from laxity.spark.rows.columns import EVENT_US

MOST = "rows a batch"
S = TypeVar("S", bound=Draft)


class EchoReport(StageReport):
    """What an echo tells of a batch; `again` came with its second version."""

    echoed: int = shown("rows", label="echoed", kind="counter", column=True)
    echo_us: int = shown("us", label="echo", kind="duration", column=True)
    again: int = shown("rows", label="again", kind="counter", default=0)


@dataclass(frozen=True)
class Echo(Stage):
    """Passes its rows on, keeps those of the last batch, and promises no more than `most` of them.

    Its table has a name that other stages have one of, too.
    """

    most: int = 1000
    name: str = "echo"
    terms: str = "passes rows on"

    @property
    def promises(self) -> tuple[PromiseTerms, ...]:
        return (PromiseTerms(name=MOST, bound=self.most, unit="rows"),)

    def needs(self, state: dict[str, Any]) -> Needs:
        return Needs({"newest_us": f"max({EVENT_US})"})

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        n_rows = context.numbers["n_rows"]
        n_before, held = context.state.get("n_rows", 0), context.tables.read("held")
        again = context.measure(rows if held is None else held, ["count(1) AS again"])
        context.tables.replace("held", rows)

        def finish(counts: Counts, before: StageResult | None) -> StageResult:
            n_again = 0 if held is None else counts["held"]["again"]
            assert n_again == n_before, "the table is what the batch before left in it"
            return StageResult(
                {"n_rows": n_rows},
                fates=Fates(released=n_rows),
                report=EchoReport(echoed=n_rows, echo_us=1_500_000, again=n_again),
                seen={MOST: n_rows},
            )

        return Planned(rows, finish, {"held": again})


def echo(stream: S) -> S:
    """The stream, its rows passed on."""
    return stream.then(Echo(), stream.schema)


PLACES = {name: f"support.echo:{name}" for name in ("Echo", "EchoReport", "echo")}
register(System("echo", stage=PLACES["Echo"], adds=PLACES["echo"], report=PLACES["EchoReport"]))
