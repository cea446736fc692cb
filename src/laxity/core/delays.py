"""How late rows arrive: models that turn event times into arrival times.

A delay model is a rule from sorted event times to arrival times; the randomness is passed in, so a
seed gives the same arrivals for ever. *Independent* models (constant, gamma, exponential,
empirical) delay each row on its own: rows overtake each other. *Queue* models (Zipf phases,
growing) delay a row behind the ones before it: arrivals keep the order of events (Slack-ScaleGate,
§6, delay policies 1 and 2; the independent ones are Aion's, §4.1.3).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from laxity.durations import duration_us
from laxity.errors import ConfigError

MS_US = 1_000
TimesUs = NDArray[np.int64]
Rng = np.random.Generator


class DelayModel(Protocol):
    """A rule that says when rows arrive."""

    def arrivals_us(self, event_us: TimesUs, rng: Rng) -> TimesUs:
        """When each row arrives, in the order of `event_us`, which is sorted."""
        ...


def _check(value: float, name: str, above: float) -> None:
    if not (math.isfinite(value) and value > above):
        raise ConfigError(f"{name} must be a number > {above:g}, got {value}")


@dataclass(frozen=True)
class Constant:
    """Every row is equally late.

    >>> Constant(5).arrivals_us(np.array([10, 20]), np.random.default_rng(0)).tolist()
    [15, 25]
    """

    delay_us: int

    def __post_init__(self) -> None:
        _check(self.delay_us, "delay_us", above=-1)

    def arrivals_us(self, event_us: TimesUs, rng: Rng) -> TimesUs:
        """Event time plus the constant."""
        return event_us + np.int64(self.delay_us)


@dataclass(frozen=True)
class Gamma:
    """Each row's delay is Gamma(shape, scale): mean shape·scale, no long tail."""

    shape: float
    scale_us: int

    def __post_init__(self) -> None:
        _check(self.shape, "shape", above=0)
        _check(self.scale_us, "scale_us", above=0)

    def arrivals_us(self, event_us: TimesUs, rng: Rng) -> TimesUs:
        """Event time plus an independent draw per row."""
        return event_us + rng.gamma(self.shape, self.scale_us, event_us.size).astype(np.int64)


@dataclass(frozen=True)
class Exponential:
    """Each row's delay is exponential: most rows are quick, a few straggle."""

    mean_us: int

    def __post_init__(self) -> None:
        _check(self.mean_us, "mean_us", above=0)

    def arrivals_us(self, event_us: TimesUs, rng: Rng) -> TimesUs:
        """Event time plus an independent draw per row."""
        return event_us + rng.exponential(self.mean_us, event_us.size).astype(np.int64)


@dataclass(frozen=True)
class Empirical:
    """Each row's delay is drawn from delays seen before."""

    values_us: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.values_us:
            raise ConfigError("values_us must hold at least one delay, got none")
        _check(min(self.values_us), "every delay in values_us", above=-1)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The delays in a text file of one number (microseconds) a line, with or without header."""
        try:
            lines = Path(path).read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read delays from {str(path)!r}: {error}") from error
        try:
            return cls(tuple(int(float(line)) for line in lines[_header(lines) :]))
        except (ValueError, OverflowError) as error:
            raise ConfigError(
                f"{str(path)!r} must hold one delay in microseconds a line: {error}"
            ) from error

    def arrivals_us(self, event_us: TimesUs, rng: Rng) -> TimesUs:
        """Event time plus an independent draw per row."""
        seen_us = np.asarray(self.values_us, np.int64)
        return event_us + seen_us[rng.integers(seen_us.size, size=event_us.size)]


def _header(lines: Sequence[str]) -> int:
    try:
        [float(line) for line in lines[:1]]
    except ValueError:
        return 1
    return 0


@dataclass(frozen=True)
class Growing:
    """Each row adds the same to the delay: row i is (i + 1)·per_row late (delay policy 2)."""

    per_row_us: int

    def __post_init__(self) -> None:
        _check(self.per_row_us, "per_row_us", above=-1)

    def arrivals_us(self, event_us: TimesUs, rng: Rng) -> TimesUs:
        """Event time plus a delay that grows row by row."""
        return event_us + np.arange(1, event_us.size + 1, dtype=np.int64) * self.per_row_us


@dataclass(frozen=True)
class ZipfPhase:
    """For `length_us`, each row takes k ms, k in 1…max, with probability ∝ k^−exponent."""

    length_us: int
    exponent: float
    max_us: int

    def __post_init__(self) -> None:
        _check(self.length_us, "a phase's length_us", above=0)
        _check(self.exponent, "a phase's exponent", above=-1)
        if self.max_us < MS_US or self.max_us % MS_US:
            raise ConfigError(f"a phase's max must be whole milliseconds ≥ 1, got {self.max_us} us")

    def quantile_us(self, uniform: NDArray[np.float64]) -> TimesUs:
        """The delays that uniform numbers in [0, 1) stand for.

        >>> ZipfPhase(1, 1.0, 2_000).quantile_us(np.array([0.0, 0.66, 0.67])).tolist()
        [1000, 1000, 2000]
        """
        weights = np.arange(1, self.max_us // MS_US + 1, dtype=np.float64) ** -self.exponent
        below = np.cumsum(weights)[:-1] / weights.sum()
        return (np.searchsorted(below, uniform, side="right") + 1) * np.int64(MS_US)


@dataclass(frozen=True)
class ZipfPeriodic:
    """Rows pass one by one through a server whose speed changes in phases (delay policy 1).

    A row waits for the one before it: arrival_i = max(arrival_{i−1}, event_i) + d_i. The phases
    repeat, counted from the first event; which one a row meets is decided when its turn comes.
    """

    phases: tuple[ZipfPhase, ...]

    def __post_init__(self) -> None:
        if not self.phases:
            raise ConfigError("phases must hold at least one phase, got none")

    def arrivals_us(self, event_us: TimesUs, rng: Rng) -> TimesUs:
        """The serial queue's departures, worked out phase by phase."""
        uniform = rng.random(event_us.size)
        arrivals_us = np.empty_like(event_us)
        done, free_us = 0, int(event_us[0]) if event_us.size else 0
        origin_us = free_us
        while done < event_us.size:
            turn_us = max(free_us, int(event_us[done]))
            phase, end_us = self._phase_at(turn_us, origin_us)
            # A row takes at least 1 ms: no more than this many can have their turn in the phase.
            most = done + (end_us - turn_us) // MS_US + 1
            turn = slice(done, min(most, int(np.searchsorted(event_us, end_us))))
            departs_us = serial_us(event_us[turn], phase.quantile_us(uniform[turn]), turn_us)
            n_rows = 1 + int(np.searchsorted(departs_us[:-1], end_us))
            arrivals_us[done : done + n_rows] = departs_us[:n_rows]
            done, free_us = done + n_rows, int(departs_us[n_rows - 1])
        return arrivals_us

    def _phase_at(self, time_us: int, origin_us: int) -> tuple[ZipfPhase, int]:
        ends_us = np.cumsum([phase.length_us for phase in self.phases])
        into_us = (time_us - origin_us) % int(ends_us[-1])
        index = int(np.searchsorted(ends_us, into_us, side="right"))
        return self.phases[index], time_us - into_us + int(ends_us[index])


def serial_us(event_us: TimesUs, cost_us: TimesUs, free_us: int) -> TimesUs:
    """When rows leave a server that takes them one by one and is free from `free_us` on.

    >>> serial_us(np.array([0, 1, 50]), np.array([10, 10, 10]), free_us=5).tolist()
    [15, 25, 60]
    """
    busy_us = np.cumsum(cost_us)
    starts_us = np.maximum(event_us, free_us) - (busy_us - cost_us)
    return busy_us + np.maximum.accumulate(starts_us)


def _gamma(text: str) -> DelayModel:
    shape, scale = text.split(",")
    return Gamma(float(shape), duration_us(scale, "scale"))


def _zipf(text: str) -> DelayModel:
    phases = [phase.split(",") for phase in text.split(";")]
    return ZipfPeriodic(tuple(_zipf_phase(*phase) for phase in phases))


def _zipf_phase(length: str, exponent: str, most: str) -> ZipfPhase:
    return ZipfPhase(duration_us(length, "length"), float(exponent), duration_us(most, "max"))


_PARSERS: dict[str, Callable[[str], DelayModel]] = {
    "constant": lambda text: Constant(duration_us(text, "delay")),
    "gamma": _gamma,
    "exponential": lambda text: Exponential(duration_us(text, "mean")),
    "zipf": _zipf,
    "growing": lambda text: Growing(duration_us(text, "per row")),
    "empirical": Empirical.load,
}
FORMS = (
    "constant:150ms, gamma:60,4ms, exponential:240ms, zipf:20s,1.0,10ms;50s,0.35,2ms, "
    "growing:1ms, empirical:/path/of/delays_in_us"
)


def parse_delay(text: str) -> DelayModel:
    """The delay model an option string names.

    >>> parse_delay("gamma:60,4ms")
    Gamma(shape=60.0, scale_us=4000)
    >>> parse_delay("zipf:20s,1.0,10ms;50s,0.35,2ms").phases[1]
    ZipfPhase(length_us=50000000, exponent=0.35, max_us=2000)
    """
    name, _, rest = text.partition(":")
    try:
        return _PARSERS[name.strip()](rest)
    except (KeyError, ValueError, TypeError, ConfigError) as error:
        why = f" ({error})" if isinstance(error, ConfigError) else ""
        raise ConfigError(f"delay must be one of the forms {FORMS}; got {text!r}{why}") from error
