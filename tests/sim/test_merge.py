"""Merging a workload on the virtual clock: nothing lost, and enough slack gives one sequence."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import oracles
from laxity.core.merge import MergeTerms
from laxity.core.slack import GRID, Fixed, MaxDelay, Memory, Quantile, Seen, SlackRule, Tcp
from laxity.errors import ConfigError
from laxity.sim.merge import Cost, Reads, run
from laxity.sim.workload import bus, scats
from oracles import Batch, Marked, Row, Setting
from support.merging import MARKS

Ints = NDArray[np.int64]
Workload = dict[str, dict[str, Ints]]


@dataclass
class Noting:
    """A rule that waits for ever and notes what it is shown."""

    grid: ClassVar[tuple[float, ...]] = GRID

    shown: list[Seen] = field(default_factory=list)

    def next(self, memory: Memory, seen: Seen) -> tuple[int | None, Memory]:
        self.shown.append(seen)
        return None, memory


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Two sources whose rows arrive in any order of their events, at least one row in all."""
    made = {}
    for name in ("a", "b"):
        events = draw(st.lists(st.integers(0, 20), min_size=1 if name == "a" else 0, max_size=10))
        arrivals = [draw(st.integers(0, 25)) for _ in events]
        made[name] = {
            "event_us": np.array(events, np.int64),
            "arrival_us": np.array(sorted(arrivals), np.int64),
        }
    return made


def arrived(workload: Workload) -> list[tuple[int, Row]]:
    """All rows with their arrival, as they come; of rows arriving together, a's first."""
    rows = [
        (int(arrival_us), (int(event_us), rank, place))
        for rank, source in enumerate(workload.values())
        for place, (event_us, arrival_us) in enumerate(
            zip(source["event_us"], source["arrival_us"], strict=True)
        )
    ]
    by_arrival = sorted(rows, key=lambda row: row[0])
    return [(arrival_us, (*row, nr)) for nr, (arrival_us, row) in enumerate(by_arrival)]


def ticks(workload: Workload, every_us: int) -> list[Batch]:
    """The batches of a run with slack 4: one every so often, until all have arrived."""
    rows = arrived(workload)
    first_us, last_us = rows[0][0], rows[-1][0]
    start_us, made = first_us - 1, []
    for now_us in range(first_us + every_us, last_us + 2 * every_us, every_us):
        fresh = [row for arrival_us, row in rows if start_us < arrival_us <= now_us]
        made.append(Batch(fresh, 4, now_us))
        start_us = now_us
    return made


def marked(reads: Reads) -> list[tuple[tuple[int, int, int], str]]:
    keys = zip(reads.event_us.tolist(), reads.source.tolist(), reads.row.tolist(), strict=True)
    return list(zip(keys, (MARKS[mark] for mark in reads.mark), strict=True))


@given(workloads(), st.integers(1, 30))
def test_same_as_oracle_a_batch_every_so_often(workload: Workload, every_us: int) -> None:
    batches = ticks(workload, every_us)
    readings = oracles.read_batches(batches, Setting(2))
    expected: list[tuple[int, Marked]] = [
        (batch.now_us, one)
        for batch, reading in zip(batches, readings, strict=True)
        for one in reading.reads
    ]
    reads = run(workload, MergeTerms(Fixed("4us")), every_us)
    assert marked(reads) == [(row[:3], mark) for _, (row, mark) in expected]
    assert reads.read_us.tolist() == [now_us for now_us, _ in expected]
    came_us = {row[:3]: arrival_us for arrival_us, row in arrived(workload)}
    assert reads.latency_us.tolist() == [now_us - came_us[row[:3]] for now_us, (row, _) in expected]
    assert reads.slack_us.tolist() == [4] * len(expected)
    assert reads.n_slack == sum(mark == "slack" for _, (_, mark) in expected)
    assert reads.n_late == sum(mark == "late" for _, (_, mark) in expected)


RULES = [Fixed(None), Fixed("0s"), MaxDelay(), Tcp("3us"), Quantile(0.5, "1us", "9us")]


@pytest.mark.parametrize("rule", RULES, ids=str)
@given(workload=workloads(), every_us=st.integers(1, 30))
def test_nothing_is_lost_read_and_held_are_all(
    rule: SlackRule, workload: Workload, every_us: int
) -> None:
    reads = run(workload, MergeTerms(rule), every_us)
    read = list(zip(reads.source.tolist(), reads.row.tolist(), strict=True))
    held = list(zip(*reads.held.tolist(), strict=True))
    rows = [(row[1], row[2]) for _, row in arrived(workload)]
    assert sorted(read + held) == sorted(rows)


@given(st.integers(1_000, 4_000_000))
def test_any_batching_with_slack_without_end_gives_one_sequence(every_us: int) -> None:
    sources = {
        "bus": bus(1, seconds=1, rate_per_s=40, delay="gamma:60,4ms"),
        "scats": scats(1, seconds=1, rate_per_s=40),
    }
    for columns in sources.values():  # a source sends in its own order
        columns["event_us"] = np.sort(columns["event_us"])
    terms = MergeTerms(Fixed(None), ties=frozenset(sources))
    reads = run(sources, terms, max(every_us, 20_000))
    passed_us = min(int(columns["event_us"][-1]) for columns in sources.values())
    expected = sorted(
        (us, rank, place)
        for rank, columns in enumerate(sources.values())
        for place, us in enumerate(columns["event_us"].tolist())
        if us < passed_us
    )
    assert len(expected) > 40
    assert marked(reads) == [(key, "ready") for key in expected]


@given(workloads(), st.integers(1, 30))
def test_same_as_oracle_a_rule_is_shown_lateness_behind_all_that_came_before(
    workload: Workload, every_us: int
) -> None:
    noting = Noting()
    run(workload, MergeTerms(noting), every_us)
    before: list[int] = []
    for batch, shown in zip(ticks(workload, every_us), noting.shown, strict=True):
        events_us = [row[0] for row in batch.rows]
        late_us = [max(max(before) - us, 0) for us in events_us] if before else []
        assert shown.n_rows == len(events_us)
        expected = tuple(oracles.quantile(late_us, q) for q in GRID) if late_us else ()
        assert shown.lateness_us == expected
        before += events_us


def test_a_rule_is_shown_how_long_the_slowest_row_read_last_took() -> None:
    source = {"event_us": np.array([1, 2, 3]), "arrival_us": np.array([0, 5, 25])}
    noting = Noting()
    run({"a": source}, MergeTerms(noting), every_us=10)
    assert [shown.latency_us for shown in noting.shown] == [None, 10, 10, 5]


def test_idle_sources_and_bounds_on_holding_let_the_rest_out_by_the_end() -> None:
    sources: Workload = {
        "a": {"event_us": np.array([1, 7]), "arrival_us": np.array([0, 10])},
        "b": {"event_us": np.array([4]), "arrival_us": np.array([0])},
    }
    waits = run(sources, MergeTerms(Fixed(None)), every_us=10, until_us=100)
    assert waits.held.tolist() == [[0], [1]]
    bounded = MergeTerms(Fixed(None), hold_at_most_us=30)
    assert run(sources, bounded, every_us=10, until_us=100).read_us.tolist() == [10, 10, 40]
    idle = run(sources, MergeTerms(Fixed(None)), 10, idle_after_us={"b": 50}, until_us=100)
    assert idle.read_us.tolist() == [10, 10, 70]


def test_time_must_move_and_there_must_be_rows() -> None:
    with pytest.raises(ConfigError, match="every_us must be > 0, got 0"):
        run({}, MergeTerms(Fixed(None)), every_us=0)
    none = np.empty(0, np.int64)
    with pytest.raises(ConfigError, match="a merge needs at least one row"):
        run({"a": {"event_us": none, "arrival_us": none}}, MergeTerms(Fixed(None)), every_us=1)


def test_processing_takes_its_time_and_keeps_the_next_batch_waiting() -> None:
    source = {"event_us": np.array([1, 2, 3, 4]), "arrival_us": np.array([0, 2, 4, 25])}
    reads = run({"a": source}, MergeTerms(Fixed(None)), every_us=10, cost=Cost(12, 1))
    assert reads.batches.tolist() == [[10, 25, 0], [25, 38, 0], [38, 50, 0]]
    assert reads.read_us.tolist() == [10, 10, 10, 25]
    assert reads.latency_us.tolist() == [25, 23, 21, 13]


def test_a_rule_is_shown_what_the_last_batch_read_and_how_far_sources_are_apart() -> None:
    sources: Workload = {
        "a": {"event_us": np.array([1, 9]), "arrival_us": np.array([0, 12])},
        "b": {"event_us": np.array([4]), "arrival_us": np.array([0])},
    }
    noting = Noting()
    reads = run(sources, MergeTerms(noting), every_us=10, until_us=30)
    shown = [
        (one.now_us, one.newest_us, one.lag_us, one.n_read, one.n_slack) for one in noting.shown
    ]
    assert shown == [(10, 4, 3, 0, 0), (20, 9, 5, 1, 0), (30, 9, 5, 1, 0)]
    assert (reads.state.n_held, reads.state.n_read) == (1, 0)
