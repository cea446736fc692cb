import json

from hypothesis import given
from hypothesis import strategies as st

from laxity.core.progress import Heard, Progress

HEARD = st.dictionaries(
    st.sampled_from(["bus", "scats"]),
    st.builds(
        lambda n, us: Heard(n_rows=n, newest_us=us if n else None),
        st.integers(0, 3),
        st.integers(0, 100),
    ),
)
TICKS = st.lists(st.tuples(HEARD, st.integers(0, 40)), max_size=20)


def progress() -> Progress:
    return Progress(["bus", "scats"], {"bus": 50, "scats": None}, now_us=0)


@given(TICKS)
def test_same_as_oracle_newest_is_the_largest_event_and_idle_is_a_long_silence(
    ticks: list[tuple[dict[str, Heard], int]],
) -> None:
    decider, now_us, said = progress(), 0, {"bus": [0], "scats": [0]}
    events: dict[str, list[int]] = {"bus": [], "scats": []}
    for heard, step_us in ticks:
        now_us += step_us
        for name, one in heard.items():
            if one.n_rows and one.newest_us is not None:
                said[name].append(now_us)
                events[name].append(one.newest_us)
        states = decider.advance(heard, now_us)
        for name in said:
            assert states[name].newest_us == max(events[name], default=None)
        assert states["bus"].idle == (now_us - said["bus"][-1] > 50)
        assert not states["scats"].idle


@given(TICKS, TICKS)
def test_crash_anywhere_a_restored_snapshot_goes_on_alike(
    before: list[tuple[dict[str, Heard], int]], after: list[tuple[dict[str, Heard], int]]
) -> None:
    one, now_us = progress(), 0
    for heard, step_us in before:
        now_us += step_us
        one.advance(heard, now_us)
    two = progress()
    two.restore(json.loads(json.dumps(one.snapshot())), now_us)
    for heard, step_us in after:
        now_us += step_us
        assert one.advance(heard, now_us) == two.advance(heard, now_us)


def test_an_idle_source_is_back_when_it_speaks() -> None:
    decider = progress()
    assert decider.advance({}, now_us=51)["bus"].idle
    assert not decider.advance({"bus": Heard(n_rows=1, newest_us=9)}, now_us=60)["bus"].idle


def test_exactly_the_patience_is_not_yet_idle() -> None:
    assert not progress().advance({}, now_us=50)["bus"].idle
