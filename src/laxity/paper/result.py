"""What running a figure leaves behind: rows, and claims checked on them.

A result holds everything a plot needs and everything needed to run it again: scale, seed, setup
and versions. A claim is what the paper's figure says in words, with the paper's number and ours.
"""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from laxity.errors import StateError

Scale = Literal["quick", "full"]
Value = int | float | str | bool | None
Row = dict[str, Value]

PACKAGES = ("laxity", "numpy", "numba", "pyspark")
FORMAT = ("id", "scale", "seed", "rows", "claims")  # what `--json` prints


class Claim(BaseModel):
    """What the paper's figure says in words, and whether our rows say so too."""

    model_config = ConfigDict(frozen=True)

    claim: str
    paper: str
    ours: str
    holds: bool


class Result(BaseModel):
    """One run of one figure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    scale: Scale
    seed: int
    versions: dict[str, str]
    config: dict[str, Any]
    rows: list[Row]
    claims: list[Claim]

    @property
    def hold(self) -> bool:
        """Whether every claim holds."""
        return all(claim.holds for claim in self.claims)

    def document(self) -> str:
        """The result as the one JSON document of `--json`."""
        return self.model_dump_json(include=set(FORMAT))

    def save(self, folder: Path) -> Path:
        """Write it all to `<folder>/<id>.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.id}.json"
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
        return path


def read_result(path: Path) -> Result:
    """A result that was saved."""
    try:
        return Result.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StateError(f"{path} is not a result of `laxity paper run`: {error}") from error


def versions() -> dict[str, str]:
    """Of Python and what the runs rest on."""
    return {"python": python_version(), **{name: version(name) for name in PACKAGES}}


def column(rows: Sequence[Row], name: str) -> list[float]:
    """One column as numbers, NaN where there is none.

    >>> column([{"a": 1}, {"a": None}], "a")
    [1.0, nan]
    """
    return [float("nan") if row[name] is None else float(row[name] or 0) for row in rows]


def where(rows: Sequence[Row], **values: Value) -> list[Row]:
    """The rows with these values.

    >>> where([{"a": 1, "b": 2}, {"a": 3, "b": 4}], a=3)
    [{'a': 3, 'b': 4}]
    """
    return [row for row in rows if all(row[name] == value for name, value in values.items())]
