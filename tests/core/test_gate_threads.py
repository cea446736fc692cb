"""Threads that share a gate: nobody misses a row, nobody gets one twice."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from laxity.core.gate import Gate, KSlack
from laxity.core.merge import Read

N_ROWS = 2_000
END_US = 10**9
EVERYTHING = sorted((writer, n) for writer in (0, 1) for n in range(N_ROWS))


@pytest.fixture(autouse=True)
def threads_swap_often() -> Iterator[None]:
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual_s)


def all_read(
    insert: Callable[[int, int, Any], None],
    read: Callable[[int], Any],
    event_us: Callable[[int, int], int],
    n_readers: int,
) -> list[list[Any]]:
    """What each reader got while two writers were at it, and after."""

    def write(writer: int) -> None:
        for n in range(N_ROWS):
            insert(writer, event_us(writer, n), (writer, n))
        insert(writer, END_US, None)

    def take(reader: int) -> list[Any]:
        rows = []
        done = False
        while not done:
            done = all(one.done() for one in writing)
            while (row := read(reader)) is not None:
                rows.append(row)
        return [row for row in rows if row[1] is not None]

    with ThreadPoolExecutor(2 + n_readers) as threads:
        writing = [threads.submit(write, writer) for writer in (0, 1)]
        reading = [threads.submit(take, reader) for reader in range(n_readers)]
        assert [one.result() for one in writing] == [None, None]
        return [one.result() for one in reading]


@pytest.mark.parametrize("slack_us", [None, 50, 5_000])
@pytest.mark.parametrize("step_back_us", [0, 400])
def test_every_reader_gets_every_row_once_and_in_order(
    slack_us: int | None, step_back_us: int
) -> None:
    def event_us(writer: int, n: int) -> int:
        """Rising, but for every seventh row of the first writer."""
        return n * 10 - (step_back_us if writer == 0 and n % 7 == 0 else 0)

    gate = Gate(n_writers=2, n_readers=3, slack_us=slack_us)

    def insert(writer: int, us: int, row: Any) -> None:
        gate.insert(writer, us, row=row)

    for rows in all_read(insert, gate.read, event_us, n_readers=3):
        assert sorted(row for _, row, _ in rows) == EVERYTHING
        in_order = [key for key, _, read in rows if read is not Read.LATE]
        assert in_order == sorted(in_order)
        if slack_us is None and not step_back_us:
            assert len(in_order) == len(rows)


def test_every_reader_of_a_buffer_gets_every_row_once() -> None:
    buffer = KSlack(k_us=50, n_readers=2)

    def insert(_: int, us: int, row: Any) -> None:
        buffer.insert(us, row)

    for rows in all_read(insert, buffer.read, lambda _, n: n * 10, n_readers=2):
        assert sorted(row for _, row in rows) == EVERYTHING
