"""Naive versions of the merge core, written from the definitions of Slack-ScaleGate (§2–§5.1).

Everything is worked out anew from full lists: slow, and easy to believe. What the paper leaves
open is read so: rows are ordered by (event, source, sequence), and as they came if equal in all
three; late rows are served first; what could once be read can be read for ever, whatever the slack
does.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Row = tuple[int, int, int, int]  # event, source, sequence, and the how-manyth row of all it is
Marked = tuple[Row, str]


def newest_us(rows: Sequence[Row]) -> int | None:
    """max_ts of Def. 3.1."""
    return max((row[0] for row in rows), default=None)


def merge_us(rows: Sequence[Row], sources: Collection[int], ties: Collection[int]) -> int | None:
    """merge_ts of Def. 2.1; a source with ties has passed only what lies before its newest."""
    passed = []
    for source in sources:
        newest = newest_us([row for row in rows if row[1] == source])
        if newest is None:
            return None
        passed.append(newest - 1 if source in ties else newest)
    return min(passed)


class OracleGate:
    """`laxity.core.gate.Gate`, from the list of all rows and the slack at every moment."""

    def __init__(
        self,
        n_writers: int,
        n_readers: int = 1,
        slack_us: int | None = None,
        ties: Collection[int] = (),
    ) -> None:
        self.writers, self.ties, self.slack_us = range(n_writers), ties, slack_us
        self.rows: list[Row] = []
        self.payloads: list[Any] = []
        self.moments: list[tuple[int, int | None]] = []  # rows inserted so far, the slack then
        self.given: list[list[Marked]] = [[] for _ in range(n_readers)]

    def insert(self, writer: int, event_us: int, seq: int | None = None, row: Any = None) -> None:
        """Alg. 2: only noted down."""
        nr = len(self.rows)
        self.rows.append((event_us, writer, nr if seq is None else seq, nr))
        self.payloads.append(row)
        self.moments.append((len(self.rows), self.slack_us))

    def set_slack(self, slack_us: int | None) -> None:
        """Note the slack down."""
        self.slack_us = slack_us
        self.moments.append((len(self.rows), slack_us))

    def merge_us(self, n_rows: int | None = None) -> int | None:
        """merge_ts when so many rows were inserted."""
        return merge_us(self.rows[:n_rows], self.writers, self.ties)

    def read(self, reader: int = 0) -> tuple[tuple[int, int, int], Any, str] | None:
        """Alg. 3: a late row, else the next row in order if it may be read."""
        given = self.given[reader]
        unread = [row for row in self.rows if row not in [gone for gone, _ in given]]
        ahead = [gone for gone, mark in given if mark != "late"]
        late = [row for row in unread if any(row[:3] < gone[:3] for gone in ahead)]
        if late:
            return self._give(reader, min(late), "late")
        if not unread or not self._may_be_read(min(unread)[0]):
            return None
        merge = self.merge_us()
        ready = merge is not None and min(unread)[0] <= merge
        return self._give(reader, min(unread), "ready" if ready else "slack")

    def _may_be_read(self, event_us: int) -> bool:
        """Whether such a row is, or ever was, ready or slack-ready."""
        for n_rows, slack_us in self.moments:
            merge, newest = self.merge_us(n_rows), newest_us(self.rows[:n_rows])
            if merge is not None and event_us <= merge:
                return True
            if newest is not None and slack_us is not None and newest - event_us > slack_us:
                return True
        return False

    def _give(self, reader: int, row: Row, mark: str) -> tuple[tuple[int, int, int], Any, str]:
        self.given[reader].append((row, mark))
        return row[:3], self.payloads[row[3]], mark


def read_once(
    rows: Sequence[Row],
    frontier_us: int | None,
    merge_us: int | None,
    position: tuple[int, int, int] | None,
) -> list[Marked]:
    """All that may be read at once: what lies behind the position, then up to the frontier."""
    late = [row for row in rows if position is not None and row[:3] < position]
    rest = [row for row in rows if row not in late]
    due = [row for row in rest if frontier_us is not None and row[0] <= frontier_us]
    ready = [row for row in due if merge_us is not None and row[0] <= merge_us]
    return [(row, "late") for row in sorted(late)] + [
        (row, "ready" if row in ready else "slack") for row in sorted(due)
    ]


@dataclass(frozen=True)
class Batch:
    """Rows that come together, when, and the slack from then on."""

    rows: list[Row]
    slack_us: int | None = None
    now_us: int = 0


@dataclass(frozen=True)
class Setting:
    """How a merge is set; sources are numbers. Everybody is first listened to at time 0."""

    n_sources: int
    ties: frozenset[int] = frozenset()
    hold_at_most_us: int | None = None
    idle_after_us: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """What one batch led to."""

    frontier_us: int | None
    merge_us: int | None
    newest_us: int | None
    reads: list[Marked]


def read_batches(batches: Sequence[Batch], setting: Setting) -> list[Reading]:
    """Read after every batch all that may be read."""
    readings: list[Reading] = []
    for n in range(len(batches)):
        readings.append(_reading(batches[: n + 1], readings, setting))
    return readings


def _reading(batches: Sequence[Batch], before: Sequence[Reading], setting: Setting) -> Reading:
    now_us, slack_us = batches[-1].now_us, batches[-1].slack_us
    came_us = {row: batch.now_us for batch in batches for row in batch.rows}
    rows, newest = list(came_us), newest_us(list(came_us))
    given = [marked for reading in before for marked in reading.reads]
    unread = [row for row in rows if row not in [gone for gone, _ in given]]

    awaited = []
    for source in range(setting.n_sources):
        last_us = max((us for row, us in came_us.items() if row[1] == source), default=0)
        patience_us = setting.idle_after_us.get(source)
        if patience_us is None or now_us - last_us <= patience_us:
            awaited.append(source)
    merge = merge_us(rows, awaited, setting.ties) if awaited else newest

    limits = [merge, *(reading.frontier_us for reading in before)]
    if newest is not None and slack_us is not None:
        limits.append(newest - slack_us - 1)
    if setting.hold_at_most_us is not None:
        limits += [row[0] for row in unread if now_us - came_us[row] >= setting.hold_at_most_us]
    frontier = max((us for us in limits if us is not None), default=None)
    position = max((row[:3] for row, mark in given if mark != "late"), default=None)
    return Reading(frontier, merge, newest, read_once(unread, frontier, merge, position))


@dataclass(frozen=True)
class Nested:
    """A merge of two sources that is one input of a second merge, a third source the other."""

    inner_us: int
    outer_us: int


def read_nested(
    batches: Sequence[Sequence[Sequence[int]]], slack: Nested
) -> list[list[tuple[int, int, str]]]:
    """What the second merge reads in each batch: source, number of its row, how.

    `batches` are the events of the three sources, all different, so that nothing hangs on ranks.
    """
    came: list[tuple[int, int, int]] = []  # event, source, number
    counts = [0, 0, 0]
    first, second = _Naive(slack.inner_us), _Naive(slack.outer_us)
    readings = []
    for batch in batches:
        new: list[tuple[int, int, int]] = []
        for source, events in enumerate(batch):
            new += [(us, source, counts[source] + n) for n, us in enumerate(events)]
            counts[source] += len(events)
        came += new
        newest = [max((row[0] for row in came if row[1] == s), default=None) for s in range(3)]
        inner = first.read([row for row in new if row[1] < 2], newest[:2], ties=2)
        outer = [row for row, _ in inner] + [row for row in new if row[1] == 2]
        read = second.read(outer, [newest[2], first.frontier_us], ties=1)
        readings.append([(row[1], row[2], mark) for row, mark in read])
    return readings


class _Naive:
    """One merge, without idle sources: keeps all it was given and looks at all of it each time."""

    def __init__(self, slack_us: int) -> None:
        self._slack_us = slack_us
        self._held: list[tuple[int, int, int]] = []
        self._last_us: int | None = None
        self.frontier_us: int | None = None

    def read(
        self, new: Sequence[tuple[int, int, int]], newest: Sequence[int | None], ties: int
    ) -> list[tuple[tuple[int, int, int], str]]:
        """The rows it lets go. `newest` by input; the first `ties` of them may repeat a time."""
        known = [us for us in newest if us is not None]
        ready_us = None
        if len(known) == len(newest):
            ready_us = min(us - (n < ties) for n, us in enumerate(known))
        limits = [ready_us, self.frontier_us]
        limits += [max(known) - self._slack_us - 1] if known else []
        self.frontier_us = max((us for us in limits if us is not None), default=None)
        late = sorted(row for row in new if self._last_us is not None and row[0] < self._last_us)
        rest = sorted([*self._held, *(row for row in new if row not in late)])
        go = [row for row in rest if self.frontier_us is not None and row[0] <= self.frontier_us]
        self._held = [row for row in rest if row not in go]
        if go:
            self._last_us = go[-1][0]
        marked = [(row, "late") for row in late]
        for row in go:
            marked.append(
                (row, "ready" if ready_us is not None and row[0] <= ready_us else "slack")
            )
        return marked


@dataclass(frozen=True)
class Met:
    """One row read by the join: the rows it is compared with, and both windows afterwards."""

    compared: list[int]
    windows: tuple[list[int], list[int]]


def walk_join(
    events_us: Sequence[int], sides: Sequence[int], on: Sequence[int], within_us: int
) -> list[Met]:
    """§3: read row by row (named by place), shift both windows, compare, keep."""
    windows: list[list[int]] = [[], []]
    walk = []
    for row, event_us in enumerate(events_us):
        left_us = max(events_us[: row + 1]) - within_us
        windows = [[kept for kept in side if events_us[kept] >= left_us] for side in windows]
        compared = [
            kept
            for kept in windows[1 - sides[row]]
            if on[kept] == on[row] and abs(events_us[kept] - event_us) <= within_us
        ]
        if event_us >= left_us:
            windows[sides[row]].append(row)
        walk.append(Met(compared, (list(windows[0]), list(windows[1]))))
    return walk


def pairs_within(
    events_us: Sequence[int], sides: Sequence[int], on: Sequence[int], within_us: int
) -> set[tuple[int, int]]:
    """The (left, right) pairs of one key at most so far apart."""
    places = range(len(events_us))
    return {
        (a, b)
        for a in places
        for b in places
        if sides[a] == 0 and sides[b] == 1
        if on[a] == on[b] and abs(events_us[a] - events_us[b]) <= within_us
    }


def quantile(values: Sequence[int], q: float) -> int:
    """The smallest value that at least a share q of all values do not exceed."""
    return next(
        value
        for value in sorted(values)
        if Fraction(sum(v <= value for v in values), len(values)) >= Fraction(str(q))
    )
