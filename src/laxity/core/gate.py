"""The gate: several writers insert rows, each of several readers gets all of them in order.

This is the seed's object (Slack-ScaleGate, §4.1 and Alg. 1–3), one row at a time: the meaning of
`laxity.core.merge`, which does the same for whole batches. A reader gets late rows first, then the
next row in total order if it is ready or slack-ready, else nothing. Every reader gets every row
exactly once. Writers are sources or upstream operators, readers are processing threads; whoever
shares a gate between threads holds its `lock`.

`ScaleGate` is a gate with slack without end. `KSlack` is the older sibling: it knows no sources
and releases a row once the newest timestamp is K past it.
"""

import heapq
from bisect import bisect_right, insort
from collections.abc import Sequence
from threading import Lock
from typing import Any

from laxity.core.merge import Key, Read

Row = tuple[int, int, int, int, Any]  # a key, a counter that tells equal keys apart, the payload

TRIM_AT = 4_096  # rows every reader has read, before they are thrown away


class Gate:
    """Rows of several writers in total order, for several readers.

    >>> gate = Gate(n_writers=2, slack_us=3)
    >>> for writer, event_us in [(0, 1), (1, 2), (0, 9)]:
    ...     gate.insert(writer, event_us)
    >>> [gate.read() for _ in range(3)]  # 2 is the last that every writer has reached
    [((1, 0, 0), None, <Read.READY: 'ready'>), ((2, 1, 1), None, <Read.READY: 'ready'>), None]
    """

    def __init__(
        self,
        n_writers: int,
        n_readers: int = 1,
        slack_us: int | None = None,
        ties: Sequence[int] = (),
    ) -> None:
        self.lock = Lock()
        self._slack_us = slack_us
        self._newest_us: list[int | None] = [None] * n_writers
        self._ties = [int(writer in ties) for writer in range(n_writers)]
        self._rows: list[Row] = []
        self._late: list[list[Row]] = [[] for _ in range(n_readers)]
        self._last: list[Row | None] = [None] * n_readers
        self._merge_us: int | None = None
        self._frontier_us: int | None = None
        self._n_inserted = 0

    def insert(self, writer: int, event_us: int, seq: int | None = None, row: Any = None) -> None:
        """Add a row; `seq` orders rows of one writer with equal time, by default as they come."""
        n = self._n_inserted
        self._n_inserted += 1
        entry = (event_us, writer, n if seq is None else seq, n, row)
        ahead = [last is not None and last[:3] > entry[:3] for last in self._last]
        for reader, overtaken in enumerate(ahead):
            if overtaken:
                heapq.heappush(self._late[reader], entry)
        if not all(ahead):
            insort(self._rows, entry, key=_order)
        newest_us = self._newest_us[writer]
        if newest_us is None or event_us > newest_us:
            self._newest_us[writer] = event_us
            self._advance()

    def set_slack(self, slack_us: int | None) -> None:
        """Wait so long from now on; what may already be read may still be read."""
        self._slack_us = slack_us
        self._advance()

    def read(self, reader: int = 0) -> tuple[Key, Any, Read] | None:
        """The reader's next row and how it is read; None while there is nothing to read."""
        if self._late[reader]:
            return _given(heapq.heappop(self._late[reader]), Read.LATE)
        last = self._last[reader]
        at = 0 if last is None else bisect_right(self._rows, _order(last), key=_order)
        if at >= TRIM_AT:
            at -= self._trim()
        if at == len(self._rows) or self._frontier_us is None:
            return None
        row = self._rows[at]
        if row[0] > self._frontier_us:
            return None
        self._last[reader] = row
        ready = self._merge_us is not None and row[0] <= self._merge_us
        return _given(row, Read.READY if ready else Read.SLACK)

    def _advance(self) -> None:
        """Move the frontier as far as writers and slack allow; it never moves back."""
        known = [us for us in self._newest_us if us is not None]
        limits = [self._frontier_us]
        if len(known) == len(self._newest_us):
            self._merge_us = min(us - tie for us, tie in zip(known, self._ties, strict=True))
            limits.append(self._merge_us)
        if known and self._slack_us is not None:
            limits.append(max(known) - self._slack_us - 1)
        self._frontier_us = max((us for us in limits if us is not None), default=None)

    def _trim(self) -> int:
        """Forget what every reader has read; how many rows that were."""
        if None in self._last:
            return 0
        n_read = min(
            bisect_right(self._rows, _order(last), key=_order) for last in self._last if last
        )
        del self._rows[:n_read]
        return n_read


class ScaleGate(Gate):
    """A gate that releases only what is ready, however long that takes."""

    def __init__(self, n_writers: int, n_readers: int = 1) -> None:
        super().__init__(n_writers, n_readers, slack_us=None)


class KSlack:
    """A buffer that sorts by time alone and releases a row once the newest is K past it.

    >>> buffer = KSlack(k_us=3)
    >>> for event_us in (4, 2, 6):
    ...     buffer.insert(event_us)
    >>> buffer.read(), buffer.read()
    ((2, None), None)
    """

    def __init__(self, k_us: int, n_readers: int = 1) -> None:
        self.lock = Lock()
        self._k_us = k_us
        self._newest_us: int | None = None
        self._heaps: list[list[tuple[int, int, Any]]] = [[] for _ in range(n_readers)]
        self._n_inserted = 0

    def insert(self, event_us: int, row: Any = None) -> None:
        """Add a row to every reader's buffer."""
        for heap in self._heaps:
            heapq.heappush(heap, (event_us, self._n_inserted, row))
        self._n_inserted += 1
        self._newest_us = event_us if self._newest_us is None else max(self._newest_us, event_us)

    def read(self, reader: int = 0) -> tuple[int, Any] | None:
        """The reader's oldest row if it has waited long enough, else None."""
        heap = self._heaps[reader]
        if not heap or self._newest_us is None or self._newest_us - heap[0][0] < self._k_us:
            return None
        event_us, _, row = heapq.heappop(heap)
        return event_us, row


def _order(row: Row) -> tuple[int, int, int, int]:
    return row[:4]


def _given(row: Row, read: Read) -> tuple[Key, Any, Read]:
    return row[:3], row[4], read
