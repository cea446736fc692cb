"""What a tuner has seen of an operator: points, few enough to learn from, and kept in a file.

A *point* is one period of one operator: the slack that was in force, how far the slowest source
lagged, and what came of it (the longest latency, the rows read early). `Watch` makes points from
what a slack rule is shown batch by batch. `thinned` keeps at most `MOST_POINTS` of them: recent
ones take the place of old ones that were like them, so that the range of slacks stays covered.

The file is JSON: `{"version": 1, "fields": [...], "points": {"merge": [[...], ...]}}`, a list of
numbers in the order of `fields` for each period, times in microseconds.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laxity.core.slack import Memory, Seen, SlackRule
from laxity.errors import StateError

MOST_POINTS = 100  # of one operator: the time to fit grows with their cube
SLACK_CELLS, LAG_CELLS = 8, 4  # the ranges are cut into so many; the fullest cell loses a point
PERIOD_US = 1_000_000
VERSION = 1


class Point(NamedTuple):
    """One period of one operator, in microseconds and rows.

    `at_us` is the newest event at its end, `took_us` how long it was by the clock, `moved_us` how
    far the newest event moved. The slowest source lagged between `lag_low_us` and `lag_high_us`.
    """

    at_us: int
    took_us: int
    moved_us: int
    slack_us: int
    lag_low_us: int
    lag_high_us: int
    n_rows: int
    latency_us: int
    n_slack: int


Points = tuple[Point, ...]


def points_of(values: Iterable[Sequence[int]]) -> Points:
    """Points from JSON."""
    return tuple(Point(*value) for value in values)


def thinned(points: Points, most: int = MOST_POINTS) -> Points:
    """At most so many points, oldest first: of the most crowded slack and lag the oldest goes.

    >>> many = tuple(Point(n, 1, 1, 9 * (n == 0), 0, 0, 1, 1, 0) for n in range(5))
    >>> [point.at_us for point in thinned(many, most=3)]
    [0, 3, 4]
    """
    while len(points) > most:
        cells = _cells(points)
        fullest = np.bincount(cells).argmax()
        oldest = int(np.flatnonzero(cells == fullest)[0])
        points = points[:oldest] + points[oldest + 1 :]
    return points


def _cells(points: Points) -> NDArray[np.int64]:
    table = np.array(points, np.float64)
    slack, lag = (Point._fields.index(name) for name in ("slack_us", "lag_high_us"))
    return _part(table[:, slack], SLACK_CELLS) * LAG_CELLS + _part(table[:, lag], LAG_CELLS)


def _part(values: NDArray[np.float64], n_parts: int) -> NDArray[np.int64]:
    """Which equal part of their range each value lies in."""
    span = max(float(np.ptp(values)), 1.0)
    part: NDArray[np.int64] = ((values - values.min()) / span * n_parts).astype(np.int64)
    return np.minimum(part, n_parts - 1)


class Watch(NamedTuple):
    """The period that is under way: from when, from which newest event, and what it has shown."""

    from_us: int
    start_us: int
    newest_us: int
    lag_low_us: int
    lag_high_us: int
    n_rows: int = 0
    latency_us: int = -1
    n_slack: int = 0

    def plus(self, seen: Seen) -> "Watch":
        """One more batch; its latency and early rows are those of the batch before."""
        lag_us = _lag_us(seen)
        known = seen.n_read > 0 and seen.latency_us is not None
        return self._replace(
            newest_us=seen.newest_us or 0,
            lag_low_us=min(self.lag_low_us, lag_us),
            lag_high_us=max(self.lag_high_us, lag_us),
            n_rows=self.n_rows + seen.n_rows,
            n_slack=self.n_slack + seen.n_slack,
            latency_us=max(self.latency_us, seen.latency_us or 0 if known else -1),
        )

    def point(self, slack_us: int, now_us: int) -> Point | None:
        """The period as a point; None if it read nothing, or nobody knows how long that took."""
        if self.latency_us < 0:
            return None
        return Point(
            at_us=self.newest_us,
            took_us=max(now_us - self.from_us, 1),
            moved_us=max(self.newest_us - self.start_us, 0),
            slack_us=slack_us,
            lag_low_us=self.lag_low_us,
            lag_high_us=self.lag_high_us,
            n_rows=self.n_rows,
            latency_us=self.latency_us,
            n_slack=self.n_slack,
        )


def watch_from(seen: Seen) -> Watch:
    """A period that begins after this batch."""
    newest_us, lag_us = seen.newest_us or 0, _lag_us(seen)
    return Watch(seen.now_us, newest_us, newest_us, lag_us, lag_us)


def _lag_us(seen: Seen) -> int:
    """How far the slowest source lags; one that has not begun is as good as level."""
    return seen.lag_us or 0


@dataclass(frozen=True)
class Recorded:
    """Another rule's slack, with a point in memory for every period: how a history is made.

    >>> from laxity.core.slack import Fixed
    >>> rule, memory = Recorded(Fixed("2s")), {}
    >>> for n in range(4):
    ...     seen = Seen(5, latency_us=7, now_us=n * PERIOD_US, newest_us=n, lag_us=0, n_read=5)
    ...     slack_us, memory = rule.next(memory, seen)
    >>> slack_us, len(memory["points"])
    (2000000, 3)
    """

    rule: SlackRule

    @property
    def grid(self) -> tuple[float, ...]:
        """What the other rule looks at."""
        return self.rule.grid

    def next(self, memory: Memory, seen: Seen) -> tuple[int | None, Memory]:
        """What the other rule says; the slack that made the period is the one before."""
        watch = Watch(*memory["watch"]).plus(seen) if "watch" in memory else watch_from(seen)
        points = memory.get("points", [])
        if seen.now_us - watch.from_us >= PERIOD_US:
            point = watch.point(memory["slack_us"] or watch.lag_high_us, seen.now_us)
            points = points if point is None else [*points, list(point)]
            watch = watch_from(seen)
        slack_us, rule = self.rule.next(memory.get("rule", {}), seen)
        kept = {"rule": rule, "watch": list(watch), "slack_us": slack_us, "points": points}
        return slack_us, kept

    def __str__(self) -> str:
        return f"{self.rule}, recorded"


def save_history(path: str | Path, points: Mapping[str, Points]) -> None:
    """Write the points of every operator to a file."""
    document: dict[str, Any] = {"version": VERSION, "fields": Point._fields, "points": points}
    Path(path).write_text(json.dumps(document) + "\n", encoding="utf-8")


def load_history(path: str | Path) -> dict[str, Points]:
    """The points of every operator from a file."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if document["version"] != VERSION or document["fields"] != list(Point._fields):
            raise StateError(f"{path}: version {document['version']} of a history is not known")
        return {name: points_of(values) for name, values in document["points"].items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(f"{path} is not a history of a tuner: {error!r}") from error
