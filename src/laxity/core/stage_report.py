"""What a stage tells of a micro-batch: its numbers, each with unit, label and kind.

Every system has one model beside its decider, like `MergeReport` in `laxity.core.merge`. Terminal,
page and metrics are made from what the fields say of themselves, so a new system is shown without
anybody being told of it. A report reads like the dictionary it is in JSON.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.config import JsonDict

from laxity.errors import ConfigError

Kind = Literal["counter", "gauge", "share", "duration", "time", "flag"]

COLUMNS_OF_UNKNOWN = 3  # how many numbers of a stage that nobody knows a table of batches shows


@dataclass(frozen=True)
class Shown:
    """How a number is shown.

    `kind`: a `counter` is of this batch, and batches add up; a `gauge` is how much there is now; a
    `share` is between 0 and 1; a `duration` or an event `time` is in `s` or `us`, as `unit` says; a
    `flag` says whether something holds. `column`: a table of batches has it. `about`: what it
    means, in a line.
    """

    unit: str
    label: str
    kind: Kind
    column: bool = False
    about: str = ""


def shown(
    unit: str,
    *,
    label: str,
    kind: Kind,
    column: bool = False,
    about: str = "",
    default: Any = ...,
) -> Any:
    """A field of a `StageReport`; see `Shown`.

    `default`: what reports say that were written before there was the field.
    """
    said: JsonDict = {"unit": unit, "kind": kind, "column": column}
    return Field(default, title=label, description=about or None, json_schema_extra=said)


_SHOWN = TypeAdapter(Shown)


class StageReport(BaseModel, Mapping[str, Any]):
    """The numbers of one stage in one micro-batch; every field is made by `shown`.

    >>> class HoldReport(StageReport):
    ...     held: int = shown("rows", label="held", kind="gauge", column=True)
    >>> report = HoldReport(held=3)
    >>> report["held"], report.get("shed", 0), dict(report), report == {"held": 3}
    (3, 0, {'held': 3}, True)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a field that does not say how it is shown."""
        for name, field in cls.model_fields.items():
            if not isinstance(field.json_schema_extra, dict) or not field.title:
                raise ConfigError(
                    f"{cls.__name__}.{name} does not say what it is: make it with "
                    'shown("rows", label="held", kind="gauge")'
                )

    def shown_fields(self) -> dict[str, Shown]:
        """How each number is shown, by its name."""
        return {
            name: _SHOWN.validate_python(
                {"label": field.title, "about": field.description or "", **said}
            )
            for name, field in type(self).model_fields.items()
            if isinstance(said := field.json_schema_extra, dict)
        }

    def _numbers(self) -> dict[str, Any]:
        return {**self.__dict__, **(self.model_extra or {})}

    def __getitem__(self, name: str) -> Any:
        return self._numbers()[name]

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]
        return iter(self._numbers())

    def __len__(self) -> int:
        return len(self._numbers())

    def __eq__(self, other: object) -> bool:
        return dict(self) == other if isinstance(other, dict) else super().__eq__(other)

    def __hash__(self) -> int:
        return hash(tuple(self._numbers().items()))


class UnknownReport(StageReport):
    """What a stage told that is not installed here: all of it, as it was written.

    >>> UnknownReport(held=3, why="no rows").shown_fields()
    {'held': Shown(unit='', label='held', kind='gauge', column=True, about='')}
    """

    model_config = ConfigDict(extra="allow")

    def shown_fields(self) -> dict[str, Shown]:
        """What is a number, by its name; the first few are columns."""
        numbers = [
            n for n, value in self._numbers().items() if isinstance(value, bool | int | float)
        ]
        return {
            name: Shown(
                unit="",
                label=name.replace("_", " "),
                kind="flag" if isinstance(self[name], bool) else "gauge",
                column=n < COLUMNS_OF_UNKNOWN,
            )
            for n, name in enumerate(numbers)
        }
