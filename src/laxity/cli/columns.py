"""The numbers of stages as columns and lines of text, by what their models say of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from laxity.core.metrics import totals
from laxity.core.report import Report
from laxity.core.stage_report import Shown, StageReport

NONE = "–"


@dataclass(frozen=True)
class Column:
    """One number of one stage, batch after batch."""

    stage: str
    name: str
    shown: Shown
    first: bool

    @property
    def header(self) -> str:
        """What is shown, the first of a stage below the stage's name."""
        label = self.shown.label + (" s" if self.shown.kind == "duration" else "")
        return f"{self.stage}\n{label}" if self.first else label

    def cell(self, report: Report) -> str:
        """What a batch's report says."""
        told = report.stages.get(self.stage)
        return NONE if told is None else text(told.get(self.name), self.shown)


def columns(reports: Sequence[Report]) -> list[list[Column]]:
    """The columns of every stage that the reports know, by stage."""
    newest: dict[str, StageReport] = {}
    for report in reports:
        newest |= report.stages
    found = [
        (stage, name, said)
        for stage, told in newest.items()
        for name, said in told.shown_fields().items()
        if said.column
    ]
    return [
        [Column(*one, first=n == 0) for n, one in enumerate(some)]
        for _, some in groupby(found, key=lambda one: one[0])
    ]


def lines(reports: Sequence[Report]) -> list[str]:
    """All that the stages tell of a run, a stage a line."""
    said = {stage: ", ".join(_said(told)) for stage, told in totals(reports).items()}
    return [f"{stage}: {numbers}" for stage, numbers in said.items() if numbers]


def _said(told: StageReport) -> list[str]:
    """The numbers that there are, with labels and units."""
    return [
        f"{said.label} {text(told[name], said)}{' s' if said.kind == 'duration' else ''}"
        for name, said in told.shown_fields().items()
        if told[name] is not None
    ]


def text(value: Any, said: Shown) -> str:
    """A number as its kind is written; durations are in seconds.

    >>> text(12_345, Shown("rows", "held", "gauge")), text(None, Shown("rows", "held", "gauge"))
    ('12,345', '–')
    >>> text(1_500_000, Shown("us", "wait", "duration")), text(0.123, Shown("", "shed", "share"))
    ('1.50', '12.3 %')
    >>> text(0, Shown("us", "final", "time")), text(True, Shown("", "exact", "flag"))
    ('1970-01-01 00:00:00', 'yes')
    """
    if value is None:
        return NONE
    match said.kind:
        case "flag":
            return "yes" if value else "no"
        case "share":
            return f"{value:.1%}".replace("%", " %")
        case "duration":
            return f"{_seconds(value, said):,.2f}"
        case "time":
            return _time(_seconds(value, said))
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def _seconds(value: float, said: Shown) -> float:
    return value / 1e6 if said.unit == "us" else value


def _time(seconds: float) -> str:
    """A time as one reads it; those before the first year and after the last stay numbers."""
    try:
        when = datetime.fromtimestamp(0, UTC) + timedelta(seconds=int(seconds))
    except OverflowError:
        return f"{seconds:,.0f} s"
    return f"{when:%Y-%m-%d %H:%M:%S}"
