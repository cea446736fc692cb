"""Run a merge over a workload on the virtual clock, batch by batch.

The same decider and the same semantics as on Spark: every `every_us` the rows that have arrived
are observed, the frontier is decided, and what may be read is read. Processing takes the time that
`Cost` says, by default none; a batch that takes longer than `every_us` keeps the next one waiting.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laxity.core.merge import MergeState, MergeTerms, decide
from laxity.core.progress import Heard, Progress
from laxity.core.release import LATE, SLACK, Released, Rows, no_rows, release
from laxity.core.slack import Seen
from laxity.errors import ConfigError

Ints = NDArray[np.int64]
Columns = Mapping[str, NDArray[np.generic]]
Part = tuple[Rows, NDArray[np.int8], int, int, int]  # read by a batch: began, done, its slack


@dataclass(frozen=True)
class Cost:
    """How long a batch takes: so much for itself, and so much for each row it reads."""

    batch_us: int = 0
    row_us: int = 0

    def of(self, n_rows: int) -> int:
        """The time a batch takes that reads so many rows.

        >>> Cost(batch_us=500, row_us=2).of(10)
        520
        """
        return self.batch_us + self.row_us * n_rows


FREE = Cost()


@dataclass(frozen=True)
class Reads:
    """Every row read, in the order it was read.

    `source` is the source's rank, `row` the row's place in that source; `slack_us` the slack then.
    `read_us` is when its batch began, `done_us` when that was done. `batches` are all of them, also
    those that read nothing, as (began, done, slack). `held` are the rows still waiting when the
    workload ended, as (source, row), `state` is what the merge remembered then.
    """

    event_us: Ints
    source: Ints
    row: Ints
    arrival_us: Ints
    read_us: Ints
    done_us: Ints
    mark: NDArray[np.int8]
    slack_us: Ints
    held: Ints
    batches: Ints
    state: MergeState

    @property
    def latency_us(self) -> Ints:
        """How long it took from every row's arrival until its batch was done."""
        return self.done_us - self.arrival_us

    @property
    def n_slack(self) -> int:
        """Rows read early because their slack ran out."""
        return int((self.mark == SLACK).sum())

    @property
    def n_late(self) -> int:
        """Rows that came behind what was already read."""
        return int((self.mark == LATE).sum())


def run(
    sources: Mapping[str, Columns],
    terms: MergeTerms,
    every_us: int,
    idle_after_us: Mapping[str, int | None] | None = None,
    until_us: int | None = None,
    *,
    cost: Cost = FREE,
    drain: bool = False,
) -> Reads:
    """Read the sources through a merge, a batch every `every_us` or when the last one is done.

    Each source has `event_us`, `arrival_us` (sorted) and perhaps `seq`. The run ends one tick after
    the last arrival, or at `until_us`: with idle sources or a bound on holding, that is when the
    rest comes out. `drain`: the last tick releases every row, since the input has ended.
    """
    if every_us <= 0:
        raise ConfigError(f"every_us must be > 0, got {every_us}")
    rows, place, arrival_us = _all_rows(sources)
    first_us, last_us = int(arrival_us[0]), int(arrival_us[-1])
    names = list(sources)
    progress = Progress(names, idle_after_us or {}, first_us)
    state, held, taken = MergeState(), no_rows(), 0
    latency_us: int | None = None
    parts: list[Part] = []
    now_us, end_us = first_us, max(last_us + every_us, until_us or 0)
    while now_us < end_us:
        now_us = max(now_us + every_us, parts[-1][3] if parts else 0)
        end = int(np.searchsorted(arrival_us, now_us, side="right"))
        fresh = rows.take(np.arange(taken, end))
        taken = end
        spoken = progress.advance(_heard(fresh, names), now_us)
        seen = _seen(fresh, terms.rule.grid, state.frontier.newest_us, latency_us)
        state = decide(terms, state, spoken, seen, now_us, drain=drain and now_us >= end_us)
        at = state.frontier
        read = release(held.plus(fresh), at.frontier_us, at.merge_us, state.position)
        held = read.held
        state = state.model_copy(update=_counted(read))
        done_us = now_us + cost.of(read.rows.ref.size)
        if read.rows.ref.size:
            latency_us = done_us - int(arrival_us[read.rows.ref].min())
        parts.append((read.rows, read.marks, now_us, done_us, at.slack_us or 0))
    return _reads(parts, state, held, place, arrival_us)


def _counted(read: Released) -> dict[str, Any]:
    """What a merge remembers of what it read."""
    return {
        "position": read.position,
        "n_held": int(read.held.ref.size),
        "n_read": int(read.rows.ref.size),
        "n_slack": int((read.marks == SLACK).sum()),
    }


def _all_rows(sources: Mapping[str, Columns]) -> tuple[Rows, Ints, Ints]:
    """The rows of all sources by arrival; `ref` is their place in that order.

    With them each row's place in its own source, and its arrival.
    """
    parts = []
    for rank, columns in enumerate(sources.values()):
        event_us = columns["event_us"].astype(np.int64)
        place = np.arange(event_us.size)
        seq = columns["seq"].astype(np.int64) if "seq" in columns else place
        arrival_us = columns["arrival_us"].astype(np.int64)
        parts.append((event_us, np.full(event_us.size, rank, np.int64), seq, place, arrival_us))
    if not sum(part[0].size for part in parts):
        raise ConfigError("a merge needs at least one row to run")
    event_us, ranks, seq, place, arrival_us = map(np.concatenate, zip(*parts, strict=True))
    by_arrival = np.argsort(arrival_us, kind="stable")
    rows = Rows(event_us, ranks, seq, np.arange(event_us.size)[np.argsort(by_arrival)])
    return rows.take(by_arrival), place[by_arrival], arrival_us[by_arrival]


def _heard(fresh: Rows, names: list[str]) -> dict[str, Heard]:
    heard = {}
    for rank, name in enumerate(names):
        mine = fresh.event_us[fresh.rank == rank]
        newest_us = int(mine.max()) if mine.size else None
        heard[name] = Heard(n_rows=int(mine.size), newest_us=newest_us)
    return heard


def _seen(
    fresh: Rows, grid: tuple[float, ...], newest_us: int | None, latency_us: int | None
) -> Seen:
    """What the batch shows a slack rule; the first batch of all shows no lateness."""
    n_rows = int(fresh.event_us.size)
    if newest_us is None or not n_rows or not grid:
        return Seen(n_rows, (), latency_us)
    late_us = np.sort(np.maximum(newest_us - fresh.event_us, 0))
    ranks = np.maximum(np.ceil(np.array(grid) * n_rows).astype(np.int64) - 1, 0)
    return Seen(n_rows, tuple(late_us[ranks].tolist()), latency_us)


def _reads(
    parts: list[Part], state: MergeState, held: Rows, place: Ints, arrival_us: Ints
) -> Reads:
    """All batches in one, with every row's place in its own source."""
    ref = np.concatenate([part.ref for part, *_ in parts])
    times = np.array([batch for _, _, *batch in parts], np.int64)
    read_us, done_us, slack_us = np.repeat(times, [part.ref.size for part, *_ in parts], axis=0).T
    return Reads(
        event_us=np.concatenate([part.event_us for part, *_ in parts]),
        source=np.concatenate([part.rank for part, *_ in parts]),
        row=place[ref],
        arrival_us=arrival_us[ref],
        read_us=read_us,
        done_us=done_us,
        mark=np.concatenate([marks for _, marks, *_ in parts]),
        slack_us=slack_us,
        held=np.stack([held.rank, place[held.ref]]),
        batches=times,
        state=state,
    )
