"""The example of Slack-ScaleGate, §3, Fig. 6: a join of two sources, windows of 4 units, slack 3.

The figure itself is not to be had; its times follow from the text. Of S1: t1 = 1 (t2 of S2 is 4 and
3 later), t2 = 5.5, and something at 9 (9 − 5.5 = 3.5 > slack). Of S2: t2 = 4, late. The first row
of S2 is not given a time; only between 1 and 4 can it be the second read, and from 1.5 on it stays
in the window when 5.5 is read: we take 2. The text says the late row is compared "only against t1
of S1 and not t2", then that t1 and the late row "should be also compared" and never will: the first
has the two swapped, as t1 has left the window and t2 is in it.
"""

import numpy as np
import pytest

from laxity.core.gate import Gate
from laxity.core.join import joined
from oracles import walk_join

UNIT_US = 1_000_000
SLACK_US, WITHIN_US = 3 * UNIT_US, 4 * UNIT_US
S1, S2 = 0, 1
TIMES = {"t1 of S1": 1, "t1 of S2": 2, "t2 of S1": 5.5, "t3 of S1": 9, "t2 of S2": 4}
EVENTS_US = {name: int(units * UNIT_US) for name, units in TIMES.items()}

# what is inserted before each read request
REQUESTS = [["t1 of S1", "t1 of S2"], ["t2 of S1"], ["t3 of S1"], ["t2 of S2"]]
READY_ONLY = [("t1 of S1", "ready"), ("t1 of S2", "ready"), None, ("t2 of S2", "ready")]
WITH_SLACK = [
    ("t1 of S1", "ready"),
    ("t1 of S2", "ready"),
    ("t2 of S1", "slack"),
    ("t2 of S2", "late"),
]


def answers(slack_us: int | None) -> list[tuple[str, str] | None]:
    """What each of the four read requests gets."""
    gate, got = Gate(n_writers=2, slack_us=slack_us), list[tuple[str, str] | None]()
    for names in REQUESTS:
        for name in names:
            gate.insert(S1 if name.endswith("S1") else S2, EVENTS_US[name], row=name)
        answer = gate.read()
        got.append(None if answer is None else (answer[1], str(answer[2])))
    return got


def test_diagram_a_only_ready_rows_are_read_and_the_third_request_waits() -> None:
    assert answers(slack_us=None) == READY_ONLY


def test_diagram_b_the_third_request_gets_a_slack_row_and_the_fourth_a_late_one() -> None:
    assert answers(SLACK_US) == WITH_SLACK


@pytest.mark.parametrize(
    ("got", "compared", "windows"),
    [
        (
            READY_ONLY,
            [[], ["t1 of S1"], ["t1 of S1"]],
            [
                (["t1 of S1"], []),
                (["t1 of S1"], ["t1 of S2"]),
                (["t1 of S1"], ["t1 of S2", "t2 of S2"]),
            ],
        ),
        (
            WITH_SLACK,
            [[], ["t1 of S1"], ["t1 of S2"], ["t2 of S1"]],
            [
                (["t1 of S1"], []),
                (["t1 of S1"], ["t1 of S2"]),
                (["t2 of S1"], ["t1 of S2"]),
                (["t2 of S1"], ["t1 of S2", "t2 of S2"]),
            ],
        ),
    ],
    ids=["diagram A", "diagram B"],
)
def test_windows_and_comparisons_are_those_of_the_figure(
    got: list[tuple[str, str] | None],
    compared: list[list[str]],
    windows: list[tuple[list[str], list[str]]],
) -> None:
    names = [answer[0] for answer in got if answer is not None]
    events_us = [EVENTS_US[name] for name in names]
    sides = [S1 if name.endswith("S1") else S2 for name in names]
    walk = walk_join(events_us, sides, [0] * len(names), WITHIN_US)
    assert [[names[row] for row in met.compared] for met in walk] == compared
    assert [tuple([names[row] for row in side] for side in met.windows) for met in walk] == windows

    pairs = joined(np.array(events_us), np.array(sides), np.zeros(len(names), np.int64), WITHIN_US)
    told = {frozenset(pair) for pair in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)}
    assert told == {frozenset([row, kept]) for row, met in enumerate(walk) for kept in met.compared}
    assert pairs.n_missed == (0 if got is READY_ONLY else 1)  # t1 of S1 and the late row
