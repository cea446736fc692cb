"""Drive the merge core with lists, so that it answers in the words of the oracles."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from laxity.core.gate import Gate
from laxity.core.merge import MergeState, MergeTerms, decide
from laxity.core.progress import Heard, Progress
from laxity.core.release import Rows, no_rows, release
from laxity.core.slack import Memory, Seen
from oracles import Batch, OracleGate, Reading, Row, Setting
from strategies import Insert, Program, ReadBy, SetSlack

MARKS = ["ready", "slack", "late"]


@dataclass(frozen=True)
class Script:
    """A slack rule that says what it was told to, batch by batch."""

    grid: ClassVar[tuple[float, ...]] = ()

    slacks_us: tuple[int | None, ...]

    def next(self, memory: Memory, seen: Seen) -> tuple[int | None, Memory]:
        n = memory.get("n", 0)
        return self.slacks_us[n], {"n": n + 1}


def columns(rows: Sequence[Row]) -> Rows:
    """Rows as columns; `ref` is what each row counts itself as."""
    table = np.array(rows, np.int64).reshape(-1, 4)
    return Rows(*(table[:, n].copy() for n in range(4)))


def listed(rows: Rows) -> list[Row]:
    """Columns as rows."""
    parts = (rows.event_us, rows.rank, rows.seq, rows.ref)
    return list(zip(*(part.tolist() for part in parts), strict=True))


def read_batches(
    batches: Sequence[Batch],
    setting: Setting,
    carry: Callable[[MergeState], MergeState] = lambda memory: memory,
) -> list[Reading]:
    """`decide` and `release` after every batch; `carry` sees the memory between batches."""
    names = [f"s{n}" for n in range(setting.n_sources)]
    idle_after_us = {names[n]: us for n, us in setting.idle_after_us.items()}
    terms = MergeTerms(
        Script(tuple(batch.slack_us for batch in batches)),
        frozenset(names[n] for n in setting.ties),
        setting.hold_at_most_us,
    )
    progress = Progress(names, idle_after_us, now_us=0)
    memory, held, readings = MergeState(), no_rows(), []
    for batch in batches:
        states = progress.advance(heard(batch.rows, names), batch.now_us)
        memory = decide(terms, memory, states, Seen(len(batch.rows)), batch.now_us)
        at = memory.frontier
        read = release(held.plus(columns(batch.rows)), at.frontier_us, at.merge_us, memory.position)
        held = read.held
        memory = carry(memory.model_copy(update={"position": read.position}))
        marked = zip(listed(read.rows), (MARKS[mark] for mark in read.marks), strict=True)
        readings.append(Reading(at.frontier_us, at.merge_us, at.newest_us, list(marked)))
    return readings


def heard(rows: Sequence[Row], names: Sequence[str]) -> dict[str, Heard]:
    """What a batch brought from each source."""
    events = {name: [row[0] for row in rows if row[1] == n] for n, name in enumerate(names)}
    return {
        name: Heard(n_rows=len(us), newest_us=max(us, default=None)) for name, us in events.items()
    }


def obey(gate: Gate | OracleGate, program: Program) -> list[tuple[int, Any]]:
    """Do to a gate what a program says; every read as (reader, answer)."""
    answers = []
    for act in program:
        match act:
            case Insert(row):
                gate.insert(row[1], row[0], row[2], row=row)
            case SetSlack(slack_us):
                gate.set_slack(slack_us)
            case ReadBy(reader):
                answers.append((reader, gate.read(reader)))
    return answers


def drain(gate: Gate | OracleGate, reader: int = 0) -> list[tuple[Row, str]]:
    """Read until there is nothing to read."""
    read = []
    while (answer := gate.read(reader)) is not None:
        read.append((answer[1], str(answer[2])))
    return read


def insert_all(gate: Gate | OracleGate, rows: Iterable[Row]) -> None:
    """Insert rows as they come."""
    for row in rows:
        gate.insert(row[1], row[0], row[2], row=row)
