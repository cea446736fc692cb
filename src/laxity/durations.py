"""Durations as people write them, as whole microseconds inside.

A duration is a string of one number and one unit (`"250ms"`, `"6s"`, `"1.5h"`, `"40d"`) or a
`timedelta`. Bare numbers are refused: their unit would be a guess.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from laxity.errors import ConfigError

Duration = str | timedelta

UNIT_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_FORM = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def duration_us(value: Duration, name: str = "duration") -> int:
    """The duration in microseconds; `name` is how an error speaks of it.

    >>> duration_us("250ms"), duration_us("1.5h"), duration_us(timedelta(days=40))
    (250000, 5400000000, 3456000000000)
    >>> duration_us("-1s", "slack")
    Traceback (most recent call last):
    laxity.errors.ConfigError: slack must be ≥ 0, got -1s
    """
    us = value // timedelta(microseconds=1) if isinstance(value, timedelta) else _parse(value, name)
    if us < 0:
        raise ConfigError(f"{name} must be ≥ 0, got {show_us(us)}")
    return us


def _parse(value: object, name: str) -> int:
    match = _FORM.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in UNIT_US:
        units = ", ".join(UNIT_US)
        raise ConfigError(
            f'{name} must be a number and a unit ({units}) like "6s", or a timedelta; got {value!r}'
        )
    return int(Decimal(match[1]) * UNIT_US[match[2]])


def show_us(us: int) -> str:
    """Microseconds in the largest unit that says them without a fraction.

    >>> show_us(6_000_000), show_us(90_000_000), show_us(0), show_us(-1_500_000)
    ('6s', '90s', '0s', '-1500ms')
    """
    if us == 0:
        return "0s"
    unit = next(unit for unit in reversed(UNIT_US) if us % UNIT_US[unit] == 0)
    return f"{us // UNIT_US[unit]}{unit}"


def show_time(us: int) -> str:
    """A time in microseconds since the epoch, as a person writes it, in UTC.

    >>> show_time(1_700_000_000_500_000), show_time(-(2**62))
    ('2023-11-14 22:13:20.500000', 'the beginning of time')
    """
    try:
        return f"{EPOCH + timedelta(microseconds=us):%Y-%m-%d %H:%M:%S.%f}".removesuffix(".000000")
    except OverflowError:
        return "the beginning of time"
