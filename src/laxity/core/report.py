"""What one micro-batch did, as one record.

Reports are what `query.reports()`, `laxity top` and the dashboard show. A report is part of the
batch's commit, so there is exactly one for every committed batch.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, SerializeAsAny, computed_field

from laxity.core.ledger import Fates, Ledger
from laxity.core.progress import SourceState
from laxity.core.stage_report import StageReport, UnknownReport
from laxity.registry import system_of


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class Latency(_Record):
    """Seconds from a result's newest row arriving to the result being out.

    `of` says whose arrival was measured: the results' own `_arrival`, or, where the user's code
    dropped that column, the batch's input rows.
    """

    p50_s: float
    p99_s: float
    max_s: float
    of: str = "results"


class Decision(_Record):
    """What a stage decided, and why."""

    stage: str
    what: str
    why: str
    values: dict[str, Any] = {}


class Promise(_Record):
    """One promise of the contract, and how this batch kept it."""

    name: str
    bound: float
    seen: float | None
    unit: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def kept(self) -> bool:
        """Whether what was seen stayed within the bound; a batch without results breaks none."""
        return self.seen is None or self.seen <= self.bound


def stage_report(label: str, told: Any) -> StageReport:
    """What a stage tells, as its system's model; as an `UnknownReport` if nobody knows the stage.

    >>> stage_report("land-join", {"compared": 3, "missed": 1, "exact": True})
    JoinReport(compared=3, missed=1, exact=True)
    >>> stage_report("elsewhere", {"n": 3})
    UnknownReport(n=3)
    """
    if isinstance(told, StageReport):
        return told
    system = system_of(label)
    model: type[StageReport] = (system and system.report_model) or UnknownReport
    return model.model_validate(told)


def stage_reports(stages: Mapping[str, Any]) -> dict[str, StageReport]:
    """What all stages tell, each as its system's model."""
    return {label: stage_report(label, told) for label, told in stages.items()}


class Report(_Record):
    """One committed micro-batch; `stages` holds the numbers each stage has to tell, by name.

    `rows` are the fates of its rows, `ledger` those of all since the beginning, `accounts` the same
    for every stage on its own. `drained`: the input had ended, and nothing was held back.
    """

    pipeline: str
    batch_id: int
    started_us: int
    emitted_us: int
    rows: Fates
    ledger: Ledger
    accounts: dict[str, Ledger] = {}
    n_results: int
    latency: Latency | None
    sources: dict[str, SourceState]
    decisions: tuple[Decision, ...]
    stages: Annotated[dict[str, SerializeAsAny[StageReport]], BeforeValidator(stage_reports)] = {}
    phases_s: dict[str, float]
    promises: tuple[Promise, ...]
    drained: bool = False

    @computed_field  # type: ignore[prop-decorator]
    @property
    def kept(self) -> bool:
        """Whether this batch kept every promise."""
        return all(promise.kept for promise in self.promises)

    @property
    def idle(self) -> list[str]:
        """The sources that have fallen silent."""
        return [name for name, state in self.sources.items() if state.idle]

    @property
    def duration_s(self) -> float:
        """How long the batch took, in all its phases."""
        return sum(self.phases_s.values())
