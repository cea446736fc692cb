import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.core.history import (
    MOST_POINTS,
    PERIOD_US,
    SLACK_CELLS,
    Point,
    Points,
    Recorded,
    Watch,
    load_history,
    save_history,
    thinned,
    watch_from,
)
from laxity.core.merge import MergeTerms
from laxity.core.slack import Fixed, MaxDelay, Memory, Quantile, Seen
from laxity.errors import StateError
from laxity.sim import merge
from laxity.sim.workload import bus, scats
from support.tuning import measure

PAIRS = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=80)


def points(pairs: list[tuple[int, int]]) -> Points:
    return tuple(Point(n, 1, 1, slack, 0, lag, 1, 1, 0) for n, (slack, lag) in enumerate(pairs))


def slack_cells(some: Points, within: Points) -> set[int]:
    """The eighths of the slack range of `within` that `some` lie in."""
    low, high = (pick(one.slack_us for one in within) for pick in (min, max))
    width = max(high - low, 1) / SLACK_CELLS
    return {min(int((one.slack_us - low) / width), SLACK_CELLS - 1) for one in some}


@given(PAIRS, st.integers(1, 40))
def test_never_more_points_than_the_bound(pairs: list[tuple[int, int]], most: int) -> None:
    kept = thinned(points(pairs), most)
    assert len(kept) == min(len(pairs), most)
    assert list(kept) == sorted(kept)


@given(PAIRS.filter(bool))
def test_the_slack_range_stays_covered(pairs: list[tuple[int, int]]) -> None:
    """Enough room for one point in every cell: none is emptied."""
    every = points(pairs)
    assert slack_cells(thinned(every, most=32), every) == slack_cells(every, every)


def test_recent_points_replace_old_ones_and_other_slacks_stay() -> None:
    old = points([(n, 0) for n in range(0, 80, 10)])
    kept: Points = old
    for n in range(1_000):
        kept = thinned((*kept, Point(100 + n, 1, 1, 30, 0, 0, 1, 1, 0)))
    assert len(kept) == MOST_POINTS
    assert {one.slack_us for one in kept} == set(range(0, 80, 10))
    assert min(one.at_us for one in kept if one.slack_us == 30) > 100


def test_a_period_is_the_worst_of_its_batches() -> None:
    first = Seen(1, now_us=10, newest_us=100, lag_us=7)
    watch = watch_from(first)
    for lag_us, latency_us, n_read in [(9, 4, 1), (3, 50, 2), (5, 99, 0)]:
        shown = Seen(5, (), latency_us, 0, 300, lag_us, n_read, n_slack=n_read)
        watch = watch.plus(shown)
    assert watch.point(slack_us=8, now_us=40) == Point(300, 30, 200, 8, 3, 9, 15, 50, 3)


def test_a_period_that_read_nothing_is_no_point() -> None:
    assert Watch(0, 0, 0, 0, 0).point(1, 2) is None
    assert watch_from(Seen()).plus(Seen(latency_us=5)).point(1, 2) is None


def test_a_source_that_has_not_begun_is_taken_as_level() -> None:
    assert watch_from(Seen(lag_us=None)).lag_high_us == 0


def test_a_recorded_rule_says_what_the_rule_says_and_leaves_points() -> None:
    for rule in (Fixed("2s"), MaxDelay(), Quantile(0.5, at_most="3s"), Fixed(None)):
        sources = {
            "bus": bus(1, seconds=20, rate_per_s=50),
            "scats": scats(1, seconds=20, rate_per_s=50),
        }
        plain = merge.run(sources, MergeTerms(rule), every_us=400_000)
        recorded = Recorded(rule)
        assert recorded.grid == rule.grid
        said = merge.run(sources, MergeTerms(recorded), every_us=400_000)
        np.testing.assert_array_equal(plain.batches, said.batches)


def test_recorded_points_follow_the_slack_and_go_through_json() -> None:
    memory: Memory = {}
    for n in range(10):
        seen = Seen(5, (), 7, n * PERIOD_US // 2, n, lag_us=3, n_read=5, n_slack=2)
        _, memory = Recorded(Fixed("2s")).next(memory, seen)
        memory = json.loads(json.dumps(memory))
    made = [Point(*one) for one in memory["points"]]
    assert [(one.slack_us, one.lag_high_us, one.latency_us) for one in made] == [
        (2_000_000, 3, 7)
    ] * 4
    assert str(Recorded(Fixed("2s"))) == "2s, recorded"


def test_a_history_is_read_as_it_was_written(work: Path) -> None:
    history = {"merge": measure(5), "later": ()}
    save_history(work / "history.json", history)
    assert load_history(work / "history.json") == history
    document = json.loads((work / "history.json").read_text())
    assert document["fields"] == list(Point._fields)


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', '{"version": 2, "fields": []}'])
def test_another_file_is_refused(work: Path, text: str) -> None:
    path = work / "bad.json"
    path.write_text(text)
    with pytest.raises(StateError, match=r"bad.json.*history"):
        load_history(path)
    with pytest.raises(StateError, match="none.json is not a history"):
        load_history(work / "none.json")
