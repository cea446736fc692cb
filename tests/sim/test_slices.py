import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laxity.core.triggers import Waiting, eager, lazy
from laxity.errors import ConfigError
from laxity.sim.retained import Retained, Rows, Terms, rows_of
from laxity.sim.slices import FINAL, RETRACTED, REVISED, TENTATIVE, Answer, Slices, Told
from laxity.sim.windows import Aggregate, App
from support.revising import Arriving, apps, arrivals, closing, coalesced, cuts, oracle, two_or_more


def patient(waiting: Waiting) -> Any:
    """A user's own: three rows, or one that is five behind."""
    return (waiting.n_late >= 3) | (waiting.frontier_us - waiting.oldest_us >= 5)


TRIGGERS = st.sampled_from([eager, lazy, patient])
PAIRS = App((Aggregate(2, 1, coalesced),))


@st.composite
def runs(draw: st.DrawFn) -> tuple[App, Arriving, list[Rows], Slices]:
    """An app, its rows with one that lets time run out, batches of them, and who takes them."""
    app, arriving = draw(apps()), draw(arrivals())
    arriving = closing(app, arriving)
    batches = [arriving.columns(*cut) for cut in draw(cuts(len(arriving.rows)))]
    return app, arriving, batches, Slices(app, arriving.terms, draw(TRIGGERS))


def known(told: list[Told]) -> dict[Any, Answer]:
    """What a reader has who keeps the newest revision, by key, time and kind."""
    answers = [answer for batch in told for answer in batch.answers]
    return {answer[:3]: answer for answer in answers}


@settings(max_examples=150)
@given(runs())
def test_same_as_oracle_in_any_batching(run: tuple[App, Arriving, list[Rows], Slices]) -> None:
    """Nothing is missing, nothing is wrong, nothing is there that should not be."""
    app, arriving, batches, slices = run
    told = [slices.batch(batch) for batch in batches]
    watermark_us = app.shape.watermark_us(max(row.ts_us for row in arriving.rows))
    got = {name: a.value for name, a in known(told).items() if a.status != RETRACTED}
    assert got == {n: v for n, v in oracle(app, arriving.rows).items() if n[1] <= watermark_us}
    assert not any(batch.too_late.size or batch.strays.size for batch in told)


@given(runs())
def test_final_results_never_change(run: tuple[App, Arriving, list[Rows], Slices]) -> None:
    """Neither those at or before the frontier, nor those that say so themselves."""
    told: list[Told] = []
    for batch in run[2]:
        before = known(told)
        final = [name for name, answer in before.items() if answer.status == FINAL]
        after = run[3].batch(batch)
        assert not {answer[:3] for answer in after.answers} & set(final)
        assert all(answer.ts_us > told[-1].final_us for answer in after.answers if told)
        told.append(after)


@given(runs())
def test_revisions_count_upwards_and_nothing_is_told_twice(
    run: tuple[App, Arriving, list[Rows], Slices],
) -> None:
    told: list[Told] = []
    for batch in run[2]:
        before = known(told)
        told.append(run[3].batch(batch))
        assert len({answer[:3] for answer in told[-1].answers}) == len(told[-1].answers)
        for answer in told[-1].answers:
            last = before.get(answer[:3])
            assert answer.revision == (0 if last is None else last.revision + 1)
            assert last is None or answer.value != last.value


@given(runs())
def test_what_is_forgotten_is_never_needed(run: tuple[App, Arriving, list[Rows], Slices]) -> None:
    """One who forgets nothing gives the same answers."""
    app, arriving, batches, slices = run
    elephant = Slices(app, arriving.terms, slices.trigger)
    elephant.history.forget = lambda: None  # type: ignore[method-assign]
    for batch in batches:
        one, other = slices.batch(batch), elephant.batch(batch)
        assert one.answers == other.answers
        assert one.n_held <= other.n_held


@given(runs(), st.data())
def test_crash_anywhere_goes_on_from_the_snapshot(
    run: tuple[App, Arriving, list[Rows], Slices], data: st.DataObject
) -> None:
    app, arriving, batches, slices = run
    end = data.draw(st.integers(0, len(batches)))
    for batch in batches[:end]:
        slices.batch(batch)
    again = Slices(app, arriving.terms, slices.trigger)
    again.restore(json.loads(json.dumps(slices.snapshot())))
    for batch in batches[end:]:
        assert again.batch(batch).answers == slices.batch(batch).answers
    assert again.snapshot() == slices.snapshot()


def told(slices: Slices, *ts_us: int, key: int = 0) -> list[tuple[int, Any, str, int]]:
    """What is told about key 0 when rows of some key come."""
    answers = sorted(slices.batch(rows_of([key] * len(ts_us), ts_us, ts_us)).answers)
    return [(a.ts_us, a.value, a.status, a.revision) for a in answers if a.key == 0]


def test_a_late_row_revises_what_it_changes_and_no_more() -> None:
    slices = Slices(PAIRS, Terms(10, period_us=1), eager)
    assert told(slices, 0, 1, 3) == [
        (-1, ((1, 0),), TENTATIVE, 0),  # what is before the first row may still come
        (0, ((0, 0), (1, 1)), FINAL, 0),
        (1, ((0, 1),), TENTATIVE, 0),
    ]
    assert told(slices, 4) == [(2, ((1, 3),), TENTATIVE, 0)]
    assert told(slices, 2) == [
        (1, ((0, 1), (1, 2)), REVISED, 1),
        (2, ((0, 2), (1, 3)), REVISED, 1),
    ]
    assert told(slices, 5) == [(3, ((0, 3), (1, 4)), FINAL, 0)]


def test_a_result_can_be_retracted_and_come_back() -> None:
    def lonely(left_us: int, rows: Any) -> Any:
        return "alone" if len(rows) % 2 else None

    slices = Slices(App((Aggregate(3, 3, lonely),)), Terms(10, period_us=1), eager)
    assert told(slices, 0, 4) == [(0, "alone", TENTATIVE, 0)]
    assert told(slices, 1) == [(0, None, RETRACTED, 1)]
    assert told(slices, 2) == [(0, "alone", REVISED, 2)]


def test_a_result_that_was_not_there_is_a_first_answer() -> None:
    slices = Slices(App((Aggregate(2, 1, two_or_more),)), Terms(10, period_us=1), eager)
    assert told(slices, 0, 3) == []
    assert told(slices, 1) == [(0, ((0, 0), (1, 1)), FINAL, 0)]


def test_exactly_as_late_as_allowed_is_not_too_late() -> None:
    slices = Slices(PAIRS, Terms(5, period_us=1), eager)
    slices.batch(rows_of([0, 0], [0, 9], [0, 9]))
    after = slices.batch(rows_of([0, 0], [4, 3], [4, 3]))
    assert after.too_late.ts_us.tolist() == [3]
    assert (after.answers[0].ts_us, after.answers[0].revision) == (3, 0)


def test_a_row_that_is_not_missing_is_a_stray() -> None:
    slices = Slices(PAIRS, Terms(9, period_us=2), eager)
    slices.batch(rows_of([0, 0, 0], [0, 2, 6], "abc"))
    after = slices.batch(rows_of([0, 0, 0], [2, 1, 4], "def"))
    assert after.strays.ts_us.tolist() == [2, 1]
    assert after.strays.value.tolist() == ["d", "e"]


def test_a_lazy_row_waits_for_its_keys_next_row_or_until_time_is_out() -> None:
    slices = Slices(PAIRS, Terms(6, period_us=1), lazy)
    slices.batch(rows_of([0, 0, 0], [0, 1, 4], "abc"))
    assert told(slices, 3) == []
    assert told(slices, 5, key=1) == [(3, ((1, "c"),), TENTATIVE, 0)]  # without the row that waits
    assert told(slices, 6)[:2] == [
        (2, ((1, 3),), TENTATIVE, 0),
        (3, ((0, 3), (1, "c")), REVISED, 1),
    ]
    assert told(slices, 2) == []
    assert (1, ((0, "b"), (1, 2)), REVISED, 1) in told(slices, 8, key=1)


def off_the_period() -> Slices:
    """A row that comes where, a moment later, no hole is seen any more; and it waits."""
    slices = Slices(PAIRS, Terms(12, period_us=10), patient_for_ever)
    told(slices, 0, 10, 20, 29)
    told(slices, 33, key=1)
    return slices


def patient_for_ever(waiting: Waiting) -> Any:
    return waiting.n_late < 0


def test_the_context_of_a_row_that_waits_is_kept() -> None:
    slices = off_the_period()
    told(slices, 30)
    told(slices, 35)
    assert (29, ((0, 29), (1, 30)), REVISED, 1) in told(slices, 42, key=1)


def test_a_result_that_a_waiting_row_changes_is_not_final() -> None:
    slices = off_the_period()
    told(slices, 32)
    told(slices, 33)
    assert (32, ((1, 33),), TENTATIVE, 0) in told(slices, 35, key=1)
    assert (32, ((0, 32), (1, 33)), REVISED, 1) in told(slices, 44, key=1)


def test_complete_streams_are_kept_for_a_span_only() -> None:
    """Of ten keys with 100 rows each there remain two spans: at the beginning and at the end."""
    app = App((Aggregate(2, 1, coalesced), Aggregate(4, 1, coalesced)))
    slices = Slices(app, Terms(1_000, period_us=1), eager)
    for ts_us in range(100):
        held = slices.batch(rows_of(range(10), [ts_us] * 10, [0] * 10)).n_held
    assert held == 10 * (5 + 6)
    blind = Slices(app, Terms(1_000), eager)
    assert [blind.batch(rows_of([0], [t], [0])).n_held for t in range(100)] == list(range(1, 101))


def test_a_key_that_fell_silent_is_forgotten() -> None:
    slices = Slices(PAIRS, Terms(5, period_us=1), eager)
    slices.batch(rows_of([0, 1], [0, 1], [0, 0]))
    for ts_us in range(2, 20):
        slices.batch(rows_of([1], [ts_us], [0]))
    history: Retained = slices.history
    assert set(history.holes.key) == set(history.rows.key) == {1}
    assert slices.batch(rows_of([0], [17], [0])).answers[0].status == TENTATIVE


@pytest.mark.parametrize(
    ("terms", "error"),
    [
        ({"lateness_us": -1}, "lateness_us must be ≥ 0, got -1"),
        ({"lateness_us": 1, "period_us": 1, "numbered": True}, "not by both"),
    ],
)
def test_terms_that_cannot_be_are_refused(terms: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        Terms(**terms)


def test_rows_by_number_may_share_a_time() -> None:
    slices = Slices(App((Aggregate(2, 2, coalesced),)), Terms(9, numbered=True), eager)
    slices.batch(rows_of([0, 0], [0, 4], "ac", number=[0, 2]))
    after = slices.batch(rows_of([0], [0], "b", number=[1]))
    assert after.answers == [Answer(0, 0, None, ((0, "a"), (0, "b")), REVISED, 1)]
    assert after.strays.size == 0
