"""When late rows are replayed: at once, or when more of them are there (TinTiN, §6.3).

A trigger is a function of what waits, asked for each key with late rows after every batch. It is
written with comparisons, arithmetic, `&` and `|`, so that numbers, arrays and Spark columns can be
asked alike. Whatever it says, no row waits longer than the bound on lateness.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from laxity.errors import ConfigError


@dataclass(frozen=True)
class Waiting:
    """The late rows of one key that wait, or of many keys as columns.

    `n_late` rows wait, this batch's among them; their events reach from `oldest_us` to `newest_us`.
    `n_on_time` rows of the key came on time in this batch. `frontier_us` is the newest event of all
    keys, this batch included.
    """

    n_late: Any
    n_on_time: Any
    oldest_us: Any
    newest_us: Any
    frontier_us: Any


Trigger = Callable[[Waiting], Any]


def eager(waiting: Waiting) -> Any:
    """As soon as a late row is there."""
    return waiting.n_late > 0


def lazy(waiting: Waiting) -> Any:
    """When the key's next row on time comes: late rows come in batches, and these are then whole.

    >>> lazy(Waiting(n_late=3, n_on_time=0, oldest_us=1, newest_us=5, frontier_us=9))
    False
    """
    return waiting.n_on_time > 0


TRIGGERS: dict[str, Trigger] = {"eager": eager, "lazy": lazy}


def trigger_of(trigger: str | Trigger) -> Trigger:
    """A trigger by name, or a user's own function.

    >>> trigger_of("soon")
    Traceback (most recent call last):
    laxity.errors.ConfigError: trigger must be eager, lazy or a function of Waiting, got 'soon'
    """
    if callable(trigger):
        return trigger
    if trigger not in TRIGGERS:
        names = ", ".join(TRIGGERS)
        raise ConfigError(f"trigger must be {names} or a function of Waiting, got {trigger!r}")
    return TRIGGERS[trigger]
