"""The tuner: keeps the deadline, learns, stays calm, and comes back from JSON as it was."""

import json
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laxity.core.decision import AIM, Coming, Terms, decide
from laxity.core.estimator import FitInBackground, FitNow, Fitting, table
from laxity.core.history import MOST_POINTS, Point, Points, save_history
from laxity.core.merge import MergeTerms
from laxity.core.operators import Graph, Operator
from laxity.core.regressors import Linear, Regressor
from laxity.core.slack import Seen, parse_slack
from laxity.core.tuned import SEEN, Shared, Tuned, refuse_below_floor
from laxity.core.tuner import PATIENCE_US, Tuner, tuning_of
from laxity.errors import ConfigError, StateError
from laxity.sim import merge
from laxity.sim.workload import bus, scats
from support.tuning import S, changes, measure, steady, world

ONE = Graph({"merge": Operator()})
TWO = Graph(
    {
        "first": Operator(),
        "second": Operator((("first", 10_000),)),
        "last": Operator((("second", 0),), merges=False),
    }
)


def straight(_: int) -> Regressor:
    return Linear()


QUICK = FitNow(make=straight)


def tuner(deadline_s: float = 6, graph: Graph = ONE, **how: Any) -> Tuner:
    return Tuner(graph, int(deadline_s * S), **({"fitting": QUICK} | how))


def test_cold_it_waits_for_half_of_what_alpha_leaves() -> None:
    assert tuner(8).next({}, {"merge": Seen()})[0] == {"merge": 2 * S}
    assert tuner(8, alpha=0.75).next({}, {"merge": Seen()})[0] == {"merge": S}
    seen = dict.fromkeys(TWO.operators, Seen())
    slacks_us, memory = tuner(8, TWO).next({}, seen)
    assert slacks_us == {"first": S, "second": S}  # they share it
    assert (tuning_of(memory).fired, tuning_of(memory).worst_s) == ("cold", None)


def test_history_makes_it_warm_from_the_first_period() -> None:
    warm = tuner(6, history={"merge": measure()})
    said, memory = world(warm, {"merge": steady(4 * S)}, 4)
    assert said[-1]["merge"] > 4.5 * S
    assert tuning_of(memory).fired == "room"


@pytest.mark.parametrize("fitting", [QUICK, FitNow()], ids=["linear", "gaussian"])
def test_slack_grows_to_what_the_deadline_leaves_and_no_further(fitting: FitNow) -> None:
    said, memory = world(tuner(6, fitting=fitting), {"merge": steady(9 * S)}, 120)
    assert 4.2 * S < said[-1]["merge"] < 5.5 * S  # results take up to 0.7 s besides
    tuning = tuning_of(memory)
    assert tuning.worst_s is not None
    assert tuning.worst_s < 6


def test_it_waits_no_longer_than_it_must_when_sources_are_level() -> None:
    said, memory = world(tuner(6), {"merge": steady(1_000)}, 120)
    assert changes(said) == 0
    assert tuning_of(memory).why == "more slack would gain too little"


def test_slower_results_cut_the_slack_and_the_reason_is_told() -> None:
    quick, memory = world(tuner(6), {"merge": steady(9 * S)}, 120)
    slow, memory = world(tuner(6), {"merge": steady(9 * S)}, 200, memory, floor_us=3 * S, begin=120)
    assert slow[-1]["merge"] < quick[-1]["merge"] - 1.5 * S
    assert slow[-1]["merge"] + 3.2 * S < 6 * S
    fired = []
    for n in range(120, 320, 2):
        _, memory = world(
            tuner(6), {"merge": steady(9 * S)}, 2, memory, floor_us=6 * S, begin=200 + n
        )
        fired.append(tuning_of(memory))
    assert "violation" in {one.fired for one in fired}
    assert "at worst the deadline would be missed, even without slack" in {one.why for one in fired}
    assert fired[-1].slacks_us == {"merge": 0}


class AtOnce(Executor):
    """Does the work as it is handed in; it is noticed the next time one asks."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@pytest.mark.parametrize("fitting", [QUICK, FitInBackground(AtOnce(), QUICK)], ids=["now", "aside"])
def test_new_models_are_reason_enough_to_look_again(fitting: Fitting) -> None:
    """With so large an alpha there is never room."""
    said, _ = world(tuner(6, fitting=fitting, alpha=0.95), {"merge": steady(9 * S)}, 120)
    assert said[0]["merge"] < 0.2 * S
    assert said[-1]["merge"] > 4 * S


def test_a_tuner_of_three_operators_gives_slack_to_the_merge_that_needs_it() -> None:
    lags = {"first": steady(4 * S), "second": steady(1_000), "last": steady(0)}
    said, memory = world(tuner(8, TWO), lags, 200)
    assert said[-1]["first"] > 4 * S > said[-1]["second"]
    assert (tuning_of(memory).worst_s or 99) < 8
    assert changes(said) <= 6


@settings(max_examples=8)
@given(
    st.integers(0, 12 * S), st.integers(0, 2 * S), st.sampled_from([0.1, 0.5, 0.9]), st.booleans()
)
def test_it_never_swings_under_constant_conditions(
    lag_us: int, floor_us: int, alpha: float, jumping: bool
) -> None:
    def lag(n: int) -> int:
        return lag_us if jumping and n % 2 else lag_us // 2

    said, memory = world(tuner(6, alpha=alpha), {"merge": lag}, 400, floor_us=floor_us)
    assert changes(said) <= 2 + 200 * S // PATIENCE_US  # a cut and a raise a minute, at most
    assert changes(said[-200:]) <= 2
    assert all(len(one) <= MOST_POINTS for one in memory["points"].values())


@settings(max_examples=10)
@given(st.integers(0, 99), st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_a_snapshot_restored_decides_the_same(cut: int, lags_s: list[int]) -> None:
    def lag(n: int) -> int:
        return lags_s[n // 15 % len(lags_s)] * S

    whole, end = world(tuner(6), {"merge": lag}, 100)
    first, memory = world(tuner(6), {"merge": lag}, cut)
    restored = json.loads(json.dumps(memory))
    rest, again = world(tuner(6), {"merge": lag}, 100 - cut, restored, begin=cut)
    assert first + rest == whole
    assert json.loads(json.dumps(again)) == json.loads(json.dumps(end))


def test_a_gaussian_tuner_restored_decides_the_same_and_a_seed_is_all_it_needs() -> None:
    def lag(n: int) -> int:
        return (n % 40) * S // 4

    def fresh(seed: int) -> Tuner:
        return tuner(6, fitting=FitNow(seed))

    whole, _ = world(fresh(1), {"merge": lag}, 120)
    first, memory = world(fresh(1), {"merge": lag}, 70)
    rest, _ = world(fresh(1), {"merge": lag}, 50, json.loads(json.dumps(memory)), begin=70)
    assert first + rest == whole


def coming(lag_us: int, points: Points, slack_us: int = 0) -> Coming:
    model = QUICK.latest("merge", Operator(), points)
    assert model is not None
    row = Point(0, S, S, slack_us, lag_us, lag_us + S, 1_000, 0, 0)
    return Coming(model, table((row,)))


@settings(max_examples=60)
@given(
    st.floats(0.05, 9),
    st.integers(0, 10 * S),
    st.integers(0, 12 * S),
    st.integers(0, 3),
    st.booleans(),
)
def test_it_never_chooses_slacks_it_predicts_to_miss_the_deadline_if_others_keep_it(
    floor_s: float, lag_us: int, slack_us: int, seed: int, learned: bool
) -> None:
    now = {"merge": coming(lag_us, measure(40, floor_s, seed))}
    terms = Terms(6 * S, 0.5)
    tuning = decide(terms, ONE, {"merge": slack_us}, now, learned)
    none = decide(terms, ONE, {"merge": 0}, now, learned=False)
    assert tuning.worst_s is not None
    assert none.worst_s is not None
    if none.worst_s < AIM * 6:
        assert tuning.worst_s < 6
    else:
        assert tuning.slacks_us["merge"] in (0, slack_us)


def test_several_merges_share_a_tuner_and_the_last_decides_for_all() -> None:
    before = {"first": (), "second": ("first",), "merge": ("second",)}
    rule = Tuned("8s", fitting=QUICK)
    alone = rule.tuner_of(before)
    parts = {name: Shared(rule, alone, name) for name in before}
    memory: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for n in range(40):
        seen = {
            name: Seen(100, (), S + (n + k) * S // 10, n * S, n * S, k * S, 100, 10 * k)
            for k, name in enumerate(before)
        }
        in_force = told.get("slacks_us") or alone.cold_us()
        slacks_us, told = alone.next(told, seen)
        heard = {}
        for name in ("first", "second"):
            slack_us, saw = parts[name].next(memory, seen[name])
            assert slack_us == in_force[name]
            heard[name] = Seen(**json.loads(json.dumps(saw))[SEEN])
        slack_us, memory = parts["merge"].hearing(heard).next(memory, seen["merge"])
        assert slack_us == slacks_us["merge"]
        assert memory["slacks_us"] == told["slacks_us"]
    assert memory["slacks_us"] != alone.cold_us()
    assert parts["first"].hold_us(S) == rule.hold_us(S) // 3


def test_a_deadline_below_the_batch_floor_is_refused_with_the_floor() -> None:
    with pytest.raises(ConfigError, match="deadline 300ms .* 560ms, with batches .* take 280ms"):
        refuse_below_floor("300ms", 280_000)
    with pytest.raises(ConfigError, match="without any slack: 560ms"):
        refuse_below_floor("560ms", 280_000)
    refuse_below_floor("561ms", 280_000)
    with pytest.raises(ConfigError, match="without any slack: 1280ms"):
        refuse_below_floor("1s", 280_000, every_us=1_000_000)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Tuned("0s"), "deadline must be > 0, got 0s"),
        (lambda: Tuned("-1s"), "deadline must be ≥ 0, got -1s"),
        (lambda: Tuned("6s", alpha=1.0), r"alpha must lie in \(0, 1\), got 1.0"),
        (lambda: Tuned("6s", alpha=0), r"alpha must lie in \(0, 1\), got 0"),
        (lambda: parse_slack("tuned:soon"), "deadline must be a number and a unit"),
    ],
)
def test_terms_that_cannot_be_are_refused(make: Callable[[], object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make()


def test_a_history_file_is_read_when_the_rule_is_made(work: Path) -> None:
    path = work / "history.json"
    save_history(path, {"merge": measure()})
    for history in (path, str(path), measure()):
        assert Tuned("6s", history=history).tuner.history == {"merge": measure()}
    with pytest.raises(StateError, match="nowhere.json is not a history"):
        Tuned("6s", history=work / "nowhere.json")


def test_the_rule_says_in_words_what_it_does() -> None:
    assert str(parse_slack("tuned:1.5s")) == "tuned so that results are out within 1500ms"
    assert Tuned("6s") == Tuned("6s")


def test_a_tuned_merge_keeps_its_deadline_and_its_sequence_is_the_seeds() -> None:
    sources = {
        "bus": bus(3, seconds=60, rate_per_s=60, delay="zipf:20s,1.0,80ms;40s,0.35,16ms"),
        "scats": scats(3, seconds=60, rate_per_s=60),
    }
    terms = MergeTerms(Tuned("3s", seed=5, fitting=QUICK))
    cost = merge.Cost(batch_us=100_000, row_us=200)
    reads, again = (merge.run(sources, terms, 500_000, cost=cost) for _ in range(2))
    in_time = reads.done_us < sources["scats"]["arrival_us"][-1]
    assert reads.latency_us[in_time].max() < 3 * S
    assert reads.slack_us.max() > 1.5 * S  # it has grown
    assert (reads.batches == again.batches).all()
