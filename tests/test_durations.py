from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laxity.durations import UNIT_US, duration_us, show_us
from laxity.errors import ConfigError


@given(st.integers(0, 10**15), st.sampled_from(sorted(UNIT_US)))
def test_a_number_and_a_unit_is_that_many_microseconds(number: int, unit: str) -> None:
    assert duration_us(f"{number}{unit}") == number * UNIT_US[unit]


@given(st.integers(0, 10**18))
def test_what_is_shown_reads_back(us: int) -> None:
    assert duration_us(show_us(us)) == us


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10**5)))
def test_a_timedelta_is_itself(delta: timedelta) -> None:
    assert duration_us(delta) == delta // timedelta(microseconds=1)


@pytest.mark.parametrize("bad", ["", "6", "s", "6 parsecs", "6s 3s", 6, None, "1e3s"])
def test_anything_else_is_refused_with_the_value(bad: object) -> None:
    with pytest.raises(ConfigError, match="slack must be a number and a unit"):
        duration_us(bad, "slack")  # type: ignore[arg-type]


@pytest.mark.parametrize("negative", ["-1s", timedelta(seconds=-1)])
def test_negative_is_refused(negative: str) -> None:
    with pytest.raises(ConfigError, match="slack must be ≥ 0, got -1s"):
        duration_us(negative, "slack")
