"""What Slack-ScaleGate proves of its gate (§5.1.1), of ours: sources in their own order.

Slack is fixed here, as in the proofs. If it is raised on the way, rows up to where the gate had
already got may still be read as slack rows although the sources are now within the slack.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.core.gate import Gate
from oracles import Marked, Row, merge_us, newest_us
from strategies import (
    IN_ORDER,
    WITH_TIES,
    Insert,
    Program,
    ReadBy,
    Sources,
    in_turns,
    steady_programs,
)
from support.merging import drain, insert_all

SLACK_US = 3
STEP_US = 3  # how far apart a steady source's rows are at most: not more than the slack


@dataclass(frozen=True)
class Moment:
    """One read: by whom, what, and the rows and readings before it."""

    reader: int
    read: Marked | None
    inserted: list[Row]
    before: list[Marked]

    def merge_us(self, n_writers: int, ties: range) -> int | None:
        return merge_us(self.inserted, range(n_writers), ties)


def moments(program: Program, n_writers: int, ties: range) -> list[Moment]:
    gate, inserted, found = Gate(n_writers, 2, SLACK_US, ties), list[Row](), list[Moment]()
    reads: list[list[Marked]] = [[], []]
    for act in program:
        if isinstance(act, Insert):
            insert_all(gate, [act.row])
            inserted.append(act.row)
        elif isinstance(act, ReadBy):
            answer = gate.read(act.reader)
            read = None if answer is None else (answer[1], str(answer[2]))
            found.append(Moment(act.reader, read, list(inserted), list(reads[act.reader])))
            reads[act.reader] += [read] if read else []
    return found


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Moment], int, range]:
    """Every read of a run over ordered sources; those that repeat timestamps have ties."""
    with_ties = draw(st.booleans())
    sources = draw(WITH_TIES if with_ties else IN_ORDER)
    ties = range(len(sources) if with_ties else 0)
    return moments(draw(steady_programs(sources)), len(sources), ties), len(sources), ties


@given(histories())
def test_definitions_2_1_and_3_1_say_how_every_row_is_read(
    history: tuple[list[Moment], int, range],
) -> None:
    reads, n_writers, ties = history
    for at in reads:
        newest, merge = newest_us(at.inserted), at.merge_us(n_writers, ties)
        unread = sorted(set(at.inserted) - {row for row, _ in at.before})
        row = at.read[0] if at.read else min(unread, default=None)
        if newest is None or row is None:
            assert at.read is None
            continue
        ready, slack_ready = merge is not None and row[0] <= merge, newest - row[0] > SLACK_US
        if at.read is None:
            assert not ready
            assert not slack_ready
        elif at.read[1] != "late":
            assert row == unread[0]
            assert at.read[1] == ("ready" if ready else "slack")
            assert ready or slack_ready


@given(histories())
def test_property_1_no_slack_rows_while_the_sources_are_within_the_slack(
    history: tuple[list[Moment], int, range],
) -> None:
    reads, n_writers, ties = history
    for at in reads:
        newest, merge = newest_us(at.inserted), at.merge_us(n_writers, ties)
        if newest is not None and merge is not None and newest - merge <= SLACK_US:
            assert at.read is None or at.read[1] != "slack"


@given(histories())
def test_property_2_a_late_row_comes_only_after_a_newer_slack_row(
    history: tuple[list[Moment], int, range],
) -> None:
    for at in history[0]:
        if at.read and at.read[1] == "late":
            assert any(mark == "slack" and row > at.read[0] for row, mark in at.before)


@given(histories())
def test_property_3_a_late_row_is_at_least_slack_ready(
    history: tuple[list[Moment], int, range],
) -> None:
    for at in history[0]:
        newest = newest_us(at.inserted)
        if at.read and newest is not None and at.read[1] == "late":
            assert newest - at.read[0][0] > SLACK_US


def test_the_histories_above_hold_every_kind_of_read_often() -> None:
    found: Counter[str | None] = Counter()

    @given(histories())
    def count(history: tuple[list[Moment], int, range]) -> None:
        found.update({at.read and at.read[1] for at in history[0]})

    count()
    assert all(found[mark] >= 10 for mark in ("ready", "slack", "late", None))


def steady(sources: Sources, spoken: list[int], rng: np.random.Generator) -> list[int]:
    """Turns that bring all the rest without any source running ahead by more than the slack."""
    spoken, turns = list(spoken), list[int]()
    while True:
        at = [source[n - 1] for source, n in zip(sources, spoken, strict=True)]
        able = []
        for rank, source in enumerate(sources):
            if spoken[rank] < len(source):
                then = [*at[:rank], source[spoken[rank]], *at[rank + 1 :]]
                able += [rank] if max(then) - min(then) <= SLACK_US else []
        if not able:
            return turns
        turns.append(able[rng.integers(len(able))])
        spoken[turns[-1]] += 1


@pytest.mark.parametrize("seed", range(20))
def test_theorem_5_3_back_to_one_sequence_after_the_sources_ran_apart(seed: int) -> None:
    """A stretch where one source runs away, then it waits for the others, then a steady stretch.

    Late rows may still come in the steady stretch until every source has passed the newest slack
    row; the paper's proof counts only those queued before. From there on all is ready, and the
    sequence is the same whatever the interleaving.
    """
    rng = np.random.default_rng(seed)
    sources = [np.cumsum(rng.integers(1, STEP_US + 1, 90)).tolist() for _ in range(3)]
    ahead = 20 + seed % 10
    until_us = sources[0][ahead - 1]
    behind = [sum(us <= until_us - SLACK_US for us in source) for source in sources]
    apart = [0] * ahead + [1] * rng.integers(1, behind[1]) + [2]
    together = [rank for rank in (1, 2) for _ in range(behind[rank] + 1 - apart.count(rank))]
    spoken = [ahead, behind[1] + 1, behind[2] + 1]

    sequences = []
    for _ in range(20):
        turns = [*apart, *together, *steady(sources, spoken, rng)]
        n_before = len(apart) + len(together)
        gate, early, later = Gate(3, slack_us=SLACK_US), list[Marked](), list[Marked]()
        for n, row in enumerate(in_turns(sources, turns)):
            insert_all(gate, [row])
            (early if n < n_before else later).extend(drain(gate))
        newest_slack_us = max(row[0] for row, mark in early if mark == "slack")
        assert "slack" not in {mark for _, mark in later}
        assert all(row[0] < newest_slack_us for row, mark in later if mark == "late")
        sequences.append([row[:3] for row, _ in later if row[0] > newest_slack_us])
        assert sequences[-1] == sorted(sequences[-1])
    shortest = min(map(len, sequences))
    assert shortest > 60
    assert all(one[:shortest] == sequences[0][:shortest] for one in sequences)
