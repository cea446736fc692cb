"""The gate: several writers insert rows, each of several readers gets all of them in order.

This is the seed's object (Slack-ScaleGate, §4.1 and Alg. 1–3), one row at a time: the meaning of
`laxity.core.merge`, which does the same for whole batches. A reader gets late rows first, then the
next row in total order if it is ready or slack-ready, else nothing. Every reader gets every row
exactly once. Writers are sources or upstream operators, readers are processing threads.

Threads may share a gate. Rows are a linked list, so readers never wait for each other, nor for a
writer whose row lies past the frontier: nobody can be there yet. Only for a row behind the
frontier does a writer stop the readers, to see who has passed its place. `lock` excludes writers.

`ScaleGate` is a gate with slack without end. `KSlack` is the older sibling: it knows no sources
and releases a row once the newest timestamp is K past it; one lock keeps all its threads apart.
"""

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from operator import sub
from threading import Lock, RLock
from typing import Any

from laxity.core.merge import Key, Read

Row = tuple[int, int, int, int, Any]  # a key, a counter that tells equal keys apart, the payload

TRIM_AT = 4_096  # rows in the list, before those every reader has read are thrown away
_NEVER = -(2**63)  # before every time


class _Node:
    """A row and the node after it."""

    __slots__ = ("after", "row")

    def __init__(self, row: Row, after: "_Node | None" = None) -> None:
        self.row = row
        self.after = after


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
        self.lock = RLock()
        self._slack_us = slack_us
        self._newest_us = [_NEVER] * n_writers
        self._ties = [int(writer in ties) for writer in range(n_writers)]
        self._limits_us = (_NEVER, _NEVER)  # the frontier and the merge point, changed as one
        first = _Node((_NEVER, 0, 0, -1, None))
        self._orders = [first.row[:4]]  # of the nodes in `_nodes`, where a row's place is looked up
        self._nodes = [first]
        self._trim_at = TRIM_AT
        self._last = [first] * n_readers
        self._late: list[list[Row]] = [[] for _ in range(n_readers)]
        self._reading = [Lock() for _ in range(n_readers)]
        self._n_inserted = 0

    def insert(self, writer: int, event_us: int, seq: int | None = None, row: Any = None) -> None:
        """Add a row; `seq` orders rows of one writer with equal time, by default as they come."""
        with self.lock:
            n = self._n_inserted
            self._n_inserted += 1
            entry = (event_us, writer, n if seq is None else seq, n, row)
            if event_us > self._limits_us[0]:
                self._link(entry)
            else:
                self._insert_behind(entry)
            if event_us > self._newest_us[writer]:
                self._newest_us[writer] = event_us
                self._advance()

    def set_slack(self, slack_us: int | None) -> None:
        """Wait so long from now on; what may already be read may still be read."""
        with self.lock:
            self._slack_us = slack_us
            self._advance()

    def read(self, reader: int = 0) -> tuple[Key, Any, Read] | None:
        """The reader's next row and how it is read; None while there is nothing to read."""
        with self._reading[reader]:
            if self._late[reader]:
                return _given(heapq.heappop(self._late[reader]), Read.LATE)
            # Limits before the list: a row is linked before they move past it.
            frontier_us, merge_us = self._limits_us
            node = self._last[reader].after
            if node is None or node.row[0] > frontier_us:
                return None
            self._last[reader] = node
        return _given(node.row, Read.READY if node.row[0] <= merge_us else Read.SLACK)

    def _insert_behind(self, entry: Row) -> None:
        """Add a row that readers may have passed: for those it is late."""
        with ExitStack() as stopped:
            for reading in self._reading:
                stopped.enter_context(reading)
            passed = [last.row[:3] > entry[:3] for last in self._last]
            for late, is_late in zip(self._late, passed, strict=True):
                if is_late:
                    heapq.heappush(late, entry)
            if not all(passed):
                self._link(entry)

    def _link(self, entry: Row) -> None:
        """Put the row in its place; a reader sees it there from the last assignment on."""
        at = bisect_right(self._orders, entry[:4])
        before = self._nodes[at - 1]
        node = _Node(entry, before.after)
        self._orders.insert(at, entry[:4])
        self._nodes.insert(at, node)
        before.after = node
        if len(self._nodes) >= self._trim_at:
            self._trim()

    def _advance(self) -> None:
        """Move the frontier as far as writers and slack allow; it never moves back."""
        merge_us = min(map(sub, self._newest_us, self._ties))
        frontier_us = max(self._limits_us[0], merge_us)
        if self._slack_us is not None:
            overdue_us = max(self._newest_us) - self._slack_us - 1  # newest − event > slack
            frontier_us = max(frontier_us, overdue_us)
        self._limits_us = (frontier_us, merge_us)

    def _trim(self) -> None:
        """Forget what every reader has read, all but the last row of the slowest."""
        slowest = min(last.row[:4] for last in self._last)
        n_read = bisect_right(self._orders, slowest) - 1
        del self._orders[:n_read], self._nodes[:n_read]
        self._trim_at = max(TRIM_AT, 2 * len(self._nodes))


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
        self.lock = RLock()
        self._k_us = k_us
        self._newest_us = _NEVER
        self._heaps: list[list[tuple[int, int, Any]]] = [[] for _ in range(n_readers)]
        self._n_inserted = 0

    def insert(self, event_us: int, row: Any = None) -> None:
        """Add a row to every reader's buffer."""
        with self.lock:
            for heap in self._heaps:
                heapq.heappush(heap, (event_us, self._n_inserted, row))
            self._n_inserted += 1
            self._newest_us = max(self._newest_us, event_us)

    def read(self, reader: int = 0) -> tuple[int, Any] | None:
        """The reader's oldest row if it has waited long enough, else None."""
        with self.lock:
            heap = self._heaps[reader]
            if not heap or self._newest_us - heap[0][0] < self._k_us:
                return None
            event_us, _, row = heapq.heappop(heap)
        return event_us, row


def _given(row: Row, read: Read) -> tuple[Key, Any, Read]:
    return row[:3], row[4], read
