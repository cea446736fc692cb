"""The options of `laxity.trace`: which trace, and how to replay it.

| option | meaning |
|---|---|
| `path` | Parquet or CSV file, folder or glob |
| `generator`, `arg.<name>` | `module:function` that makes the rows, and its arguments |
| `event`, `arrival` | the columns that hold the times; a generator's are called just that |
| `delay` | draw a column `arrival` from `event`: an option of `laxity.core.delays` |
| `seed` | of the generator or the delay, 0 unless told |
| `pace` | `flood` (unless told), `live`, or how many times faster than live |
| `rows_per_batch` | the most rows a micro-batch takes |
| `partitions` | the tasks that read a micro-batch, 2 unless told |
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from laxity.errors import ConfigError

TEXTS = ("path", "generator", "event", "arrival", "delay")
OPTIONS = (*TEXTS, "seed", "pace", "rows_per_batch", "partitions")
ARG = "arg."


@dataclass(frozen=True)
class TraceSpec:
    """Everything that determines a trace's rows."""

    path: str | None = None
    generator: str | None = None
    args: tuple[tuple[str, str], ...] = ()
    event: str | None = None
    arrival: str | None = None
    delay: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.path is None) == (self.generator is None):
            raise ConfigError(
                "a trace has either the option path or the option generator; "
                f"got path {self.path!r} and generator {self.generator!r}"
            )
        if self.arrival and self.delay:
            raise ConfigError(
                f"arrival {self.arrival!r} is known, so delay {self.delay!r} cannot be drawn: "
                "leave one of the two out"
            )
        if self.args and not self.generator:
            raise ConfigError(f"options arg.* are for a generator; got {dict(self.args)}")


@dataclass(frozen=True)
class Replay:
    """How a trace is given out: `speed` is None for as fast as possible."""

    speed: float | None
    rows_per_batch: int | None
    n_partitions: int


def parse_options(options: Mapping[str, str]) -> tuple[TraceSpec, Replay]:
    """Which trace, and how to replay it; an option nobody knows is refused.

    >>> parse_options({"path": "trips.parquet", "pace": "live"})[1]
    Replay(speed=1.0, rows_per_batch=None, n_partitions=2)
    """
    unknown = [name for name in options if name not in OPTIONS and not name.startswith(ARG)]
    if unknown:
        known = ", ".join((*OPTIONS, ARG + "<name>"))
        raise ConfigError(f"unknown option {', '.join(unknown)}: a trace knows {known}")
    args = {name.removeprefix(ARG): text for name, text in options.items() if name.startswith(ARG)}
    spec = TraceSpec(
        **{name: options[name] for name in TEXTS if name in options},
        args=tuple(sorted(args.items())),
        seed=_whole("seed", options.get("seed", "0"), low=0),
    )
    per_batch = options.get("rows_per_batch")
    return spec, Replay(
        speed=_speed(options.get("pace", "flood")),
        rows_per_batch=None if per_batch is None else _whole("rows_per_batch", per_batch, low=1),
        n_partitions=_whole("partitions", options.get("partitions", "2"), low=1),
    )


def _whole(name: str, text: str, low: int) -> int:
    if not text.strip().isdecimal() or int(text) < low:
        raise ConfigError(f"{name} must be a whole number ≥ {low}, got {text!r}")
    return int(text)


def _speed(pace: str) -> float | None:
    if pace in {"flood", "live"}:
        return None if pace == "flood" else 1.0
    try:
        speed = float(pace)
    except ValueError:
        speed = math.nan
    if not (math.isfinite(speed) and speed > 0):
        raise ConfigError(f'pace must be "flood", "live" or a number > 0, got {pace!r}')
    return speed
