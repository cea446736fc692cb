"""What all workloads share: columns in order of arrival, and skewed draws."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laxity.core.delays import parse_delay
from laxity.errors import ConfigError

Columns = dict[str, NDArray[Any]]

START_US = 1_767_225_600_000_000  # 2026-01-01 00:00 UTC, a Thursday
SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US
DAY_US = 24 * HOUR_US


def by_arrival(event_us: NDArray[np.int64], arrival_us: NDArray[np.int64], **data: Any) -> Columns:
    """The columns in order of arrival; rows that arrive together keep their order.

    >>> by_arrival(np.array([1, 2]), np.array([9, 8]), n=np.array([10, 20]))["n"].tolist()
    [20, 10]
    """
    order = np.argsort(arrival_us, kind="stable")
    columns: Columns = {"event_us": event_us, "arrival_us": arrival_us, **data}
    return {name: column[order] for name, column in columns.items()}


def delayed_us(
    event_us: NDArray[np.int64], delay: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """When rows at sorted event times arrive under a delay option."""
    return parse_delay(delay).arrivals_us(event_us, rng)


def evenly_us(
    n_rows: int, rate_per_s: float, start_us: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Sorted event times, one at a random place in each of `n_rows` equal slots."""
    slots = np.arange(n_rows) + rng.random(n_rows)
    return start_us + (slots * (SECOND_US / rate_per_s)).astype(np.int64)


def ranks(weights: NDArray[np.float64], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`n` draws of an index, each as likely as its weight."""
    below = np.cumsum(weights)[:-1] / weights.sum()
    return np.searchsorted(below, rng.random(n), side="right").astype(np.int64)


def at_least(low: float, **values: float) -> None:
    """Refuse a size or rate below `low`, by name.

    >>> at_least(1, buses=0)
    Traceback (most recent call last):
    laxity.errors.ConfigError: buses must be ≥ 1, got 0
    """
    for name, value in values.items():
        if not value >= low:
            raise ConfigError(f"{name} must be ≥ {low:g}, got {value}")
