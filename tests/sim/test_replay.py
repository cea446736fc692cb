import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.core.progress import Progress
from laxity.errors import ConfigError
from laxity.sim.replay import replay
from laxity.sim.workload import bus, scats


def progress() -> Progress:
    return Progress(["bus", "scats"], {"bus": None, "scats": None}, now_us=0)


@given(st.integers(1, 3_000_000))
def test_any_batching_the_end_is_the_same(every_us: int) -> None:
    sources = {"bus": bus(1, seconds=2, rate_per_s=20), "scats": scats(1, seconds=2, rate_per_s=20)}
    last = replay(sources, progress(), max(every_us, 10_000))[-1]
    assert {name: state.newest_us for name, state in last.items()} == {
        name: int(columns["event_us"].max()) for name, columns in sources.items()
    }


def test_a_tick_sees_only_what_has_arrived() -> None:
    source = {"event_us": np.array([10, 20, 5]), "arrival_us": np.array([100, 150, 210])}
    decider = Progress(["bus"], {"bus": 40}, now_us=0)
    seen = replay({"bus": source}, decider, every_us=50)
    assert [one["bus"].newest_us for one in seen] == [20, 20, 20]
    assert [one["bus"].heard_us for one in seen] == [150, 150, 250]


def test_time_must_move() -> None:
    with pytest.raises(ConfigError, match="every_us must be > 0, got 0"):
        replay({}, progress(), every_us=0)
