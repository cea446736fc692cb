"""A system from outside: all there is to one that only tells how many rows it saw."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from laxity.core.stage_report import StageReport, shown
from laxity.registry import System, register
from laxity.spark.engine.stage import Outcome, Stage, Turn


class EchoReport(StageReport):
    """What an echo tells of a batch; `again` came with its second version."""

    echoed: int = shown("rows", label="echoed", kind="counter", column=True)
    echo_us: int = shown("us", label="echo", kind="duration", column=True)
    again: int = shown("rows", label="again", kind="counter", default=0)


@dataclass(frozen=True)
class Echo(Stage):
    """Passes its rows on."""

    name: str = "echo"
    terms: str = "passes rows on"

    def __call__(self, rows: DataFrame, turn: Turn) -> Outcome:
        told = {"echoed": turn.intake.live, "echo_us": 1_500_000}
        return Outcome(rows, numbers=lambda: told)


register(System("echo", stage="support.echo:Echo", report="support.echo:EchoReport"))
