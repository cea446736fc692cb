"""Reports as metrics and as totals, by what the stages' models say of their numbers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from laxity.core.report import Report
from laxity.core.stage_report import Kind, StageReport
from laxity.registry import system_of


@dataclass(frozen=True)
class Metric:
    """One number of a stage, for whoever collects them.

    A `counter` is of one batch: who serves it adds up.
    """

    name: str
    kind: Kind
    unit: str
    value: float
    labels: dict[str, str]
    about: str


def metrics_of(report: Report) -> Iterator[Metric]:
    """All numbers that the stages tell; those that there are not, like the slack of none, are out.

    Named after the system, so that `merge` and `land-merge` are one metric with two labels.
    """
    for label, told in report.stages.items():
        system = system_of(label)
        labels = {"pipeline": report.pipeline, "stage": label}
        for name, said in told.shown_fields().items():
            if told[name] is not None:
                called = f"laxity_{system.name if system else 'stage'}_{name}"
                yield Metric(
                    name=re.sub(r"\W", "_", called),
                    kind=said.kind,
                    unit=said.unit,
                    value=float(told[name]),
                    labels=labels,
                    about=said.about or said.label,
                )


def totals(reports: Sequence[Report]) -> dict[str, StageReport]:
    """Many batches as one, by stage: counters add up, flags hold throughout, the rest is newest."""
    total: dict[str, StageReport] = {}
    for report in reports:
        for label, told in report.stages.items():
            total[label] = _after(total[label], told) if label in total else told
    return total


def _after(before: StageReport, told: StageReport) -> StageReport:
    both = {
        name: _together(said.kind, before[name], told[name])
        for name, said in told.shown_fields().items()
        if name in before
    }
    return told.model_copy(update=both)


def _together(kind: Kind, before: Any, now: Any) -> Any:
    if kind == "counter":
        return before + now
    return before and now if kind == "flag" else now
