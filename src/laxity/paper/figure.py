"""How a figure is run, judged and drawn.

A figure is a module `laxity.paper.<id>` with the four names of `Figure`. Running it needs no
plotting library; drawing it needs nothing but the result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from laxity.errors import ConfigError
from laxity.paper import FIGURES
from laxity.paper.result import Claim, Result, Row, Scale, versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Told = Callable[[float, str], None]  # the share of the work that is done, and what comes next


def untold(share: float, what: str) -> None:
    """Progress nobody asked for."""


class Figure(Protocol):
    """What the module of a figure offers; `SCALES` holds a dataclass per scale."""

    @property
    def SCALES(self) -> Mapping[Scale, Any]:  # noqa: N802
        """How the figure is set up at each scale."""

    def run(self, scale: Scale, seed: int, told: Told = untold) -> list[Row]:
        """The figure's numbers, as flat rows."""

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """What the paper says of them, checked."""

    def plot(self, result: Result, canvas: "Canvas") -> None:
        """Draw the rows; computes nothing."""


def figure(figure_id: str) -> Figure:
    """The module of a figure."""
    if figure_id not in FIGURES:
        raise ConfigError(f"there is no figure {figure_id!r}; there are {', '.join(FIGURES)}")
    return cast("Figure", import_module(f"laxity.paper.{figure_id.replace('-', '_')}"))


def reproduce(figure_id: str, scale: Scale, seed: int, told: Told = untold) -> Result:
    """Run a figure and check its claims."""
    module = figure(figure_id)
    if seed < 0:
        raise ConfigError(f"seed must be ≥ 0, got {seed}")
    rows = module.run(scale, seed, told)
    return Result(
        id=figure_id,
        scale=scale,
        seed=seed,
        versions=versions(),
        config=asdict(module.SCALES[scale]),
        rows=rows,
        claims=module.claims(rows),
    )


def draw(result: Result, folder: Path) -> Path:
    """Draw a result to `<folder>/<id>.png`."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(10, 7), layout="constrained")
    figure(result.id).plot(result, canvas)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.id}.png"
    canvas.savefig(path, dpi=110, format="png")
    return path
