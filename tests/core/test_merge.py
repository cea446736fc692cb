"""Deciding how far a merge may release, batch by batch; with `release` it is the gate."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from laxity.core.gate import Gate
from laxity.core.merge import FIRST_US, MergeState, MergeTerms, decide, in_words
from laxity.core.progress import Frontier, SourceState
from laxity.core.slack import Fixed, Quantile, Seen, SlackRule, Tcp
from oracles import Batch, Marked, Setting
from strategies import (
    ANY_SOURCES,
    SLACKS,
    WITH_TIES,
    Sources,
    all_turns,
    arrivals,
    batches,
    cut,
    in_turns,
    settings_of,
)
from support import merging
from support.merging import Script, drain, insert_all


def reads(readings: list[oracles.Reading]) -> list[Marked]:
    return [marked for reading in readings for marked in reading.reads]


def at(newest_us: int | None, idle: bool = False) -> SourceState:
    return SourceState(newest_us=newest_us, heard_us=0, idle=idle)


def decided(
    sources: dict[str, SourceState], slack_us: int | None = None, ties: tuple[str, ...] = ()
) -> Frontier:
    terms = MergeTerms(Script((slack_us,)), frozenset(ties))
    return decide(terms, MergeState(), sources, Seen(), now_us=0).frontier


@given(st.data())
def test_same_as_oracle_with_idle_sources_ties_bounds_and_changing_slack(
    data: st.DataObject,
) -> None:
    sources = data.draw(ANY_SOURCES)
    setting = data.draw(settings_of(len(sources)))
    parts = data.draw(batches(sources))
    assert merging.read_batches(parts, setting) == oracles.read_batches(parts, setting)


@given(st.data())
def test_one_row_per_batch_is_the_gate_row_for_row(data: st.DataObject) -> None:
    sources = data.draw(ANY_SOURCES)
    ties = data.draw(settings_of(len(sources))).ties
    gate = Gate(len(sources), ties=list(ties))
    parts, expected = [], []
    for row in data.draw(arrivals(sources)):
        parts.append(Batch([row], data.draw(SLACKS)))
        gate.set_slack(parts[-1].slack_us)
        insert_all(gate, [row])
        expected.append(drain(gate))
    readings = merging.read_batches(parts, Setting(len(sources), ties))
    assert [reading.reads for reading in readings] == expected


@given(st.data())
def test_any_batching_with_slack_without_end_gives_one_sequence(data: st.DataObject) -> None:
    sources = data.draw(WITH_TIES)
    setting = Setting(len(sources), frozenset(range(len(sources))))
    passed_us = min(source[-1] for source in sources)
    rows = in_turns(sources, all_turns(sources))
    expected = sorted(row[:3] for row in rows if row[0] < passed_us)
    for slack_us in (None, 9):  # times are 0…9
        turns = data.draw(st.permutations(all_turns(sources)))
        parts = data.draw(cut(in_turns(sources, turns)))
        read = reads(merging.read_batches([Batch(part, slack_us) for part in parts], setting))
        assert [row[:3] for row, _ in read] == expected
        assert {mark for _, mark in read} <= {"ready"}


@pytest.mark.parametrize("ties", [frozenset[int](), frozenset([0, 1])])
def test_a_timestamp_repeated_across_a_cut_is_late_without_ties_and_in_order_with(
    ties: frozenset[int],
) -> None:
    parts = [[(5, 0, 0, 0), (5, 1, 0, 1)], [(5, 0, 1, 2), (6, 0, 2, 3), (6, 1, 1, 4)]]
    read = reads(merging.read_batches([Batch(part) for part in parts], Setting(2, ties)))
    places = [(row[3], mark) for row, mark in read]
    if ties:
        assert places == [(0, "ready"), (2, "ready"), (1, "ready")]
    else:
        assert places == [(0, "ready"), (1, "ready"), (2, "late"), (3, "ready"), (4, "ready")]


@given(st.data())
def test_crash_anywhere_memory_as_json_changes_nothing(data: st.DataObject) -> None:
    sources = data.draw(ANY_SOURCES)
    setting = data.draw(settings_of(len(sources)))
    parts = data.draw(batches(sources))

    def through_json(memory: MergeState) -> MergeState:
        back = MergeState.model_validate_json(memory.model_dump_json())
        assert back == memory
        return back

    carried = merging.read_batches(parts, setting, through_json)
    assert carried == merging.read_batches(parts, setting)


@pytest.mark.parametrize("rule", [Quantile(0.5, "1us", "9s"), Tcp("4s"), Fixed(None)])
def test_the_memory_of_a_rule_goes_through_json_too(rule: SlackRule) -> None:
    memory, sources = MergeState(), {"a": at(9_000_000), "b": at(None)}
    for n in range(5):
        seen = Seen(100, tuple(range(n, n + 11)), latency_us=n % 3)
        memory = decide(MergeTerms(rule), memory, sources, seen, now_us=n)
        assert MergeState.model_validate_json(memory.model_dump_json()) == memory


def test_an_idle_source_leaves_the_minimum_and_is_waited_for_again_when_it_speaks() -> None:
    assert decided({"a": at(9), "b": at(4)}).merge_us == 4
    assert decided({"a": at(9), "b": at(4, idle=True)}).merge_us == 9
    rows: list[list[oracles.Row]] = [
        [(4, 1, 0, 0), (9, 0, 0, 1)],
        [(10, 0, 1, 2)],  # by now source 1 has been silent for longer than 5
        [(8, 1, 1, 3), (12, 0, 2, 4)],  # it is back, behind what was read
        [(13, 1, 2, 5)],
    ]
    parts = [Batch(part, None, now_us) for part, now_us in zip(rows, [0, 6, 7, 8], strict=True)]
    readings = merging.read_batches(parts, Setting(2, idle_after_us={1: 5}))
    assert [[(row[0], mark) for row, mark in one.reads] for one in readings] == [
        [(4, "ready")],
        [(9, "ready"), (10, "ready")],
        [(8, "late")],
        [(12, "ready")],
    ]


def test_when_all_are_idle_everything_comes_out_the_newest_too() -> None:
    found = decided({"a": at(9, idle=True), "b": at(4, idle=True)}, ties=("a", "b"))
    assert (found.frontier_us, found.why) == (9, "every source is past")


def test_a_source_that_never_starts_blocks_until_it_is_idle() -> None:
    assert decided({"a": at(9), "b": at(None)}).frontier_us is None
    assert decided({"a": at(9), "b": at(None, idle=True)}).frontier_us == 9


def test_a_source_that_never_starts_blocks_only_until_slack_runs_out() -> None:
    found = decided({"a": at(9), "b": at(None)}, slack_us=3)
    assert (found.frontier_us, found.merge_us, found.why) == (5, None, "slack ran out")


def test_ties_hold_back_a_sources_own_newest_timestamp_only() -> None:
    assert decided({"a": at(9), "b": at(4)}, ties=("a",)).merge_us == 4
    assert decided({"a": at(9), "b": at(4)}, ties=("b",)).merge_us == 3


@given(st.data())
def test_no_row_waits_past_the_first_batch_after_hold_at_most(data: st.DataObject) -> None:
    sources, hold_us = data.draw(ANY_SOURCES), data.draw(st.integers(0, 8))
    parts = data.draw(batches(sources))
    end_us = parts[-1].now_us
    parts += [Batch([], None, end_us + n) for n in range(1, 12)]  # nothing comes, time goes on
    setting = Setting(len(sources), hold_at_most_us=hold_us)
    waiting: dict[oracles.Row, int] = {}
    for batch, one in zip(parts, merging.read_batches(parts, setting), strict=True):
        waiting |= dict.fromkeys(batch.rows, batch.now_us)
        for row, _ in one.reads:
            del waiting[row]
        assert all(batch.now_us - came_us < hold_us for came_us in waiting.values())
    assert not waiting


def test_a_held_row_comes_out_by_the_wall_clock_although_event_time_stands_still() -> None:
    parts = [Batch([(5, 0, 0, 0)], None, 0), Batch([], None, 9), Batch([], None, 10)]
    readings = merging.read_batches(parts, Setting(2, hold_at_most_us=10))
    assert [one.reads for one in readings] == [[], [], [((5, 0, 0, 0), "slack")]]


def test_a_bound_on_holding_set_later_counts_from_then() -> None:
    sources = {"a": at(5), "b": at(None)}
    memory = decide(MergeTerms(Fixed(None)), MergeState(), sources, Seen(), now_us=0)
    bounded = MergeTerms(Fixed(None), hold_at_most_us=10)
    memory = decide(bounded, memory, sources, Seen(), now_us=100)
    assert memory.frontier.frontier_us is None
    assert decide(bounded, memory, sources, Seen(), now_us=110).frontier.frontier_us == 5


@given(st.data())
def test_memory_of_waiting_batches_ends_with_the_waiting(data: st.DataObject) -> None:
    sources = data.draw(ANY_SOURCES)
    parts = data.draw(batches(sources))
    setting = Setting(len(sources), hold_at_most_us=3)
    carried: list[MergeState] = []

    def note(memory: MergeState) -> MergeState:
        carried.append(memory)
        return memory

    merging.read_batches(parts, setting, note)
    for memory, batch in zip(carried, parts, strict=True):
        assert all(batch.now_us - came_us < 3 for came_us, _ in memory.waiting)


@given(st.data())
def test_the_frontier_never_moves_back(data: st.DataObject) -> None:
    sources: Sources = data.draw(ANY_SOURCES)
    setting = data.draw(settings_of(len(sources)))
    found = merging.read_batches(data.draw(batches(sources)), setting)
    so_far = [one.frontier_us for one in found if one.frontier_us is not None]
    assert so_far == sorted(so_far)


def test_more_slack_leaves_the_frontier_where_it_is_and_says_so() -> None:
    sources, terms = {"a": at(9), "b": at(2)}, MergeTerms(Script((3, 7)))
    memory = decide(terms, MergeState(), sources, Seen(), now_us=0)
    again = decide(terms, memory, sources, Seen(), now_us=1)
    assert (memory.frontier.frontier_us, memory.frontier.slack_us) == (5, 3)
    assert (again.frontier.frontier_us, again.frontier.slack_us) == (5, 7)
    assert again.frontier.why == "as before"


def test_a_decision_says_in_words_why_and_how_long_it_waits() -> None:
    assert decided({"a": at(9), "b": at(None)}).why == "waits for b"
    assert in_words(decided({"a": at(9), "b": at(8)}, 3)) == "every source is past; slack 3us"
    assert in_words(Frontier()) == "no source has spoken; slack for ever"
    held = MergeTerms(Fixed(None), hold_at_most_us=0)
    assert decide(held, MergeState(), {"a": at(1), "b": at(None)}, Seen(), 0).frontier.why == (
        "held too long"
    )


def test_slack_longer_than_all_time_is_slack_without_end() -> None:
    sources = {"a": SourceState(newest_us=7, heard_us=0), "b": SourceState(heard_us=0)}
    terms = MergeTerms(Fixed(timedelta.max))
    after = decide(terms, MergeState(), sources, Seen(), now_us=0)
    assert after.frontier.frontier_us == FIRST_US
