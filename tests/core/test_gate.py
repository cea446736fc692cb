"""The gate: every reader gets every row once, in order as far as the slack allows."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.core import gate as gate_module
from laxity.core.gate import Gate, KSlack, ScaleGate
from oracles import OracleGate, Row
from strategies import (
    ANY_SOURCES,
    MAX_US,
    Insert,
    ReadBy,
    Sources,
    all_turns,
    in_turns,
    programs,
    steady_programs,
)
from support.merging import drain, insert_all, obey

SLACK_US = 3
TIED: Sources = [[1, 2, 2, 2, 5, 5, 9], [2, 2, 3, 5, 5, 6, 9], [0, 2, 5, 5, 5, 9, 9]]
APART: Sources = [[1, 4, 6, 7, 12], [2, 4, 5, 13], [0, 3, 4, 7, 8, 11]]


def some_ties(n_writers: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, n_writers - 1), unique=True)


@pytest.mark.parametrize("trim_at", [1, 4_096])
@given(data=st.data())
def test_same_as_oracle_for_any_inserts_reads_and_slack_changes(
    trim_at: int, data: st.DataObject
) -> None:
    sources = data.draw(ANY_SOURCES)
    program = data.draw(programs(sources, n_readers=2))
    ties = data.draw(some_ties(len(sources)))
    asked = (len(sources), 2, SLACK_US, ties)
    with mock.patch.object(gate_module, "TRIM_AT", trim_at):
        assert obey(Gate(*asked), program) == obey(OracleGate(*asked), program)


@given(st.data())
def test_every_reader_gets_every_row_exactly_once(data: st.DataObject) -> None:
    sources = data.draw(ANY_SOURCES)
    program = data.draw(programs(sources, n_readers=3))
    gate = Gate(len(sources), 3, SLACK_US, data.draw(some_ties(len(sources))))
    answers = obey(gate, program)
    end_us = MAX_US + 1
    for writer in range(len(sources)):  # once all have moved on, nothing is left to wait for
        gate.insert(writer, end_us + 1, row=(end_us + 1, writer, 0, -1))
    rows = [act.row for act in program if isinstance(act, Insert)]
    for reader in range(3):
        early = [answer[1] for by, answer in answers if by == reader and answer is not None]
        rest = [row for row, _ in drain(gate, reader) if row[0] <= end_us]
        assert sorted(early + rest) == sorted(rows)


@pytest.mark.parametrize("form", [Gate, OracleGate])
def test_a_row_at_the_merge_point_is_ready_and_one_beyond_is_not(
    form: type[Gate] | type[OracleGate],
) -> None:
    gate = form(n_writers=2)
    insert_all(gate, [(5, 0, 0, 0), (5, 1, 0, 1), (6, 1, 1, 2)])
    assert drain(gate) == [((5, 0, 0, 0), "ready"), ((5, 1, 0, 1), "ready")]


@pytest.mark.parametrize("form", [Gate, OracleGate])
def test_a_row_exactly_the_slack_behind_waits_and_a_microsecond_more_is_slack_ready(
    form: type[Gate] | type[OracleGate],
) -> None:
    gate = form(n_writers=2, slack_us=4)
    insert_all(gate, [(5, 0, 0, 0), (9, 0, 1, 1)])
    assert drain(gate) == []
    gate.insert(0, 10, 2, row=(10, 0, 2, 2))
    assert drain(gate) == [((5, 0, 0, 0), "slack")]


def test_less_slack_frees_a_waiting_row_at_once_and_more_does_not_take_it_back() -> None:
    gate = Gate(n_writers=2, slack_us=None)
    insert_all(gate, [(3, 0, 0, 0), (9, 0, 1, 1)])
    assert gate.read() is None
    gate.set_slack(5)
    gate.set_slack(None)
    assert drain(gate) == [((3, 0, 0, 0), "slack")]


def test_a_late_row_comes_before_rows_in_order() -> None:
    gate = Gate(n_writers=2, slack_us=0)
    insert_all(gate, [(5, 0, 0, 0), (6, 0, 1, 1)])
    assert drain(gate) == [((5, 0, 0, 0), "slack")]
    insert_all(gate, [(8, 0, 2, 2), (4, 1, 0, 3), (1, 1, 1, 4)])
    assert drain(gate) == [
        ((1, 1, 1, 4), "late"),
        ((4, 1, 0, 3), "late"),
        ((6, 0, 1, 1), "slack"),
    ]


def test_a_row_late_for_one_reader_is_in_order_for_another() -> None:
    gate = Gate(n_writers=2, n_readers=2, slack_us=0)
    insert_all(gate, [(5, 0, 0, 0), (6, 0, 1, 1)])
    assert gate.read(0) is not None
    insert_all(gate, [(4, 1, 0, 2)])
    assert drain(gate, 0) == [((4, 1, 0, 2), "late")]
    assert drain(gate, 1) == [((4, 1, 0, 2), "ready"), ((5, 0, 0, 0), "slack")]


def test_rows_alike_in_everything_are_all_read_as_they_came() -> None:
    gate = Gate(n_writers=1)
    for nr in range(3):
        gate.insert(0, 5, seq=7, row=nr)
        assert gate.read() == ((5, 0, 7), nr, "ready")
    assert gate.read() is None


def merged(sources: Sources, turns: list[int], slack_us: int | None, pause: int) -> list[Row]:
    """What a reader that looks up every so many rows has read in the end, as (row, mark)."""
    gate, read = Gate(len(sources), 1, slack_us, ties=range(len(sources))), []
    for nr, row in enumerate(in_turns(sources, turns)):
        insert_all(gate, [row])
        if nr % pause == 0:
            read += drain(gate)
    read += drain(gate)
    assert {mark for _, mark in read} == {"ready"}
    return [(*row[:3], 0) for row, _ in read]


@pytest.mark.parametrize("sources", [TIED, APART])
@pytest.mark.parametrize("slack_us", [None, 13])  # no row is more than 13 behind another
def test_enough_slack_gives_one_sequence_for_thousands_of_interleavings(
    sources: Sources, slack_us: int | None
) -> None:
    rng = np.random.default_rng(7)
    rows = sorted(in_turns(sources, all_turns(sources)))
    passed_us = min(source[-1] for source in sources)
    expected = [(*row[:3], 0) for row in rows if row[0] < passed_us]
    for n in range(500):
        turns = rng.permutation(all_turns(sources)).tolist()
        assert merged(sources, turns, slack_us, pause=1 + n % 5) == expected


def test_a_repeated_timestamp_waits_if_its_writer_has_ties_and_else_is_late_not_lost() -> None:
    rows = [(5, 1, 0, 0), (5, 0, 0, 1)], [(5, 0, 1, 2), (6, 0, 2, 3), (6, 1, 1, 4)]
    plain, with_ties = Gate(2), Gate(2, ties=[0, 1])
    read: dict[Gate, list[list[tuple[Row, str]]]] = {plain: [], with_ties: []}
    for part in rows:
        for gate, found in read.items():
            insert_all(gate, part)
            found.append(drain(gate))
    assert read[plain] == [
        [((5, 0, 0, 1), "ready"), ((5, 1, 0, 0), "ready")],
        [((5, 0, 1, 2), "late"), ((6, 0, 2, 3), "ready"), ((6, 1, 1, 4), "ready")],
    ]
    assert read[with_ties] == [
        [],
        [((5, 0, 0, 1), "ready"), ((5, 0, 1, 2), "ready"), ((5, 1, 0, 0), "ready")],
    ]


def test_what_every_reader_has_read_is_forgotten() -> None:
    gate = Gate(n_writers=1, n_readers=2)
    for nr in range(3 * gate_module.TRIM_AT):
        gate.insert(0, nr)
        assert gate.read(0) is not None
        if nr >= 100:  # the other reader is a little behind
            assert gate.read(1) is not None
    assert len(gate._nodes) <= gate_module.TRIM_AT + 100
    assert len(drain(gate, 1)) == 100


@given(st.data())
def test_scalegate_is_a_gate_with_slack_without_end(data: st.DataObject) -> None:
    sources = data.draw(ANY_SOURCES)
    acts = data.draw(steady_programs(sources))
    n = len(sources)
    answers = obey(ScaleGate(n, 2), acts)
    assert answers == obey(OracleGate(n, 2, slack_us=None), acts)
    assert all(answer is None or answer[2] != "slack" for _, answer in answers)


@given(
    st.lists(st.one_of(st.integers(0, 20), st.builds(ReadBy, st.integers(0, 1)))),
    st.integers(0, 8),
)
def test_same_as_oracle_kslack_gives_the_oldest_once_the_newest_is_k_ahead(
    acts: list[int | ReadBy], k_us: int
) -> None:
    buffer, came = KSlack(k_us, n_readers=2), list[tuple[int, int]]()
    unread: list[list[tuple[int, int]]] = [[], []]
    for act in acts:
        if isinstance(act, ReadBy):
            mine = unread[act.reader]
            due = [row for row in mine if max(came)[0] - row[0] >= k_us]
            expected = min(due, default=None)
            assert buffer.read(act.reader) == expected
            if expected is not None:
                mine.remove(expected)
        else:
            came.append((act, len(came)))
            for mine in unread:
                mine.append(came[-1])
            buffer.insert(act, row=came[-1][1])
