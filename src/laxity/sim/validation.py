"""The meter application: hourly consumption, what the fuses allow, and meters that break down.

Two aggregates in series (TinTiN, §2.1 and §7): the difference of two readings an hour apart, and a
look at some hours of it. An hour is invalid if its consumption is negative or more than the fuses
let through. A meter that breaks down shows a *pattern*: large consumption, then a negative one
within the window. A missing reading leaves two hours without consumption; so whatever is missing,
there is no alert about a meter all of whose hours are valid.
"""

from collections.abc import Sequence
from typing import Any

from laxity.sim.windows import Aggregate, App, Row
from laxity.sim.workload.columns import HOUR_US

FUSE_KWH = 100.0  # more than the fuses of a house let through in an hour

Alert = tuple[str, float]  # its kind; the hour's consumption, or how many were large


def running_example(large_kwh: float, hours: int = 4) -> App:
    """Alerts on the pattern only, each with the number of large values (TinTiN, Fig. 1)."""

    def alert(left_us: int, rows: Sequence[Row]) -> int | None:
        return large_before_negative([row.value for row in rows], large_kwh) or None

    return App((_consumption(), Aggregate(hours * HOUR_US, HOUR_US, alert)))


def meter_app(fuse_kwh: float = FUSE_KWH, hours: int = 24) -> App:
    """Alerts of three kinds (§7): an hour in excess of the fuses, a negative one, the pattern."""

    def alerts(left_us: int, rows: Sequence[Row]) -> list[Alert] | None:
        first = [row.value for row in rows if row.ts_us == left_us]
        found: list[Alert] = [("excess", kwh) for kwh in first if kwh > fuse_kwh]
        found += [("negative", kwh) for kwh in first if kwh < 0]
        n_large = large_before_negative([row.value for row in rows], fuse_kwh)
        found += [("pattern", n_large)] if n_large else []
        return found or None

    steps = _consumption(), Aggregate(hours * HOUR_US, HOUR_US, alerts), _one_by_one
    return App(steps, kind=lambda alert: alert[0])


def _consumption() -> Aggregate:
    return Aggregate(2 * HOUR_US, HOUR_US, consumption)


def _one_by_one(row: Row) -> Any:
    return row.value


def consumption(left_us: int, rows: Sequence[Row]) -> float | None:
    """The difference of two readings that follow each other.

    >>> consumption(0, [Row(0, "a", 7.5), Row(HOUR_US, "a", 9.0)])
    1.5
    """
    both = len(rows) == 2  # noqa: PLR2004
    return rows[1].value - rows[0].value if both else None


def large_before_negative(kwh: Sequence[float], large_kwh: float) -> int:
    """How many large values are followed by a negative one.

    >>> large_before_negative([1, 300, 200, -400, 250], large_kwh=100)
    2
    """
    last = max((place for place, value in enumerate(kwh) if value < 0), default=0)
    return sum(value > large_kwh for value in kwh[:last])
