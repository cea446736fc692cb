"""Order several streams by time without waiting past a slack.

A row is *ready* once every source has moved past it, and *slack-ready* once the newest event of
any source is more than the slack ahead of it (Slack-ScaleGate, Def. 2.1 and 3.1). Both are one
number, the frontier: rows at or before it are released, in total order (event, rank of the source,
sequence). A row behind one that was released is *late*: released at once, ahead of the others,
marked. No row is lost and none comes twice; only with too little slack does order suffer.

Beyond the seed: idle sources leave the minimum; a row is held at most so long by the wall clock;
a source may send several rows with one timestamp (`ties`), so that its newest timestamp is
complete only when it moves on. Where a row's own source breaks its order, the row is simply late.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from laxity.core.progress import Frontier, SourceState
from laxity.core.slack import Seen, SlackRule
from laxity.core.stage_report import StageReport, shown
from laxity.durations import show_us

FIRST_US = -(2**63)  # no time is before it, and slack may be longer than all time

DRAINED = "the input has ended"  # why the frontier passed every row

Key = tuple[int, int, int]  # event, rank of the source, sequence: the total order


class Read(StrEnum):
    """How a row was read from a merge."""

    READY = "ready"
    SLACK = "slack"
    LATE = "late"


class MergeState(BaseModel):
    """What a merge carries from batch to batch.

    `position` is the last key in total order that was released, `n_held` how many rows wait,
    `held_us` the newest event among them, `held_arrived_us` when the first of them came.
    `n_read` and `n_slack` are the rows the last batch read, and those of them read early;
    `arrived_us` is when the first of them came.
    `waiting` are the batches whose rows may still be held: when they came, and their newest event.
    """

    model_config = ConfigDict(frozen=True)

    frontier: Frontier = Frontier()
    position: Key | None = None
    n_held: int = 0
    held_us: int | None = None
    held_arrived_us: int | None = None
    n_read: int = 0
    n_slack: int = 0
    arrived_us: int | None = None
    waiting: tuple[tuple[int, int], ...] = ()
    rule: dict[str, Any] = {}


class MergeReport(StageReport):
    """What a merge tells of a batch: rows read, by `Read`, and those that wait."""

    slack_s: float | None = shown(
        "s", label="slack", kind="duration", column=True, about="how long rows may wait"
    )
    oldest_late_us: int | None = shown(
        "us", label="oldest late", kind="time", about="when the oldest of the late rows happened"
    )
    ready: int = shown(
        "rows", label="in order", kind="counter", about="rows read with every source past them"
    )
    slack: int = shown(
        "rows", label="early", kind="counter", column=True, about="rows read when slack ran out"
    )
    late: int = shown(
        "rows", label="late", kind="counter", column=True, about="rows behind one read before"
    )
    held: int = shown("rows", label="held", kind="gauge", about="rows that wait")


@dataclass(frozen=True)
class MergeTerms:
    """How a merge is set. `ties` are the sources that may repeat a timestamp."""

    rule: SlackRule
    ties: frozenset[str] = frozenset()
    hold_at_most_us: int | None = None


def decide(
    terms: MergeTerms,
    state: MergeState,
    sources: Mapping[str, SourceState],
    seen: Seen,
    now_us: int,
    *,
    drain: bool = False,
) -> MergeState:
    """The frontier after one more batch; `sources` are as they stand with that batch.

    `drain`: the input has ended, nobody is waited for, and the frontier passes every row.

    >>> from laxity.core.slack import Fixed
    >>> at = {"a": SourceState(newest_us=9_000_000, heard_us=0),
    ...       "b": SourceState(newest_us=5_000_000, heard_us=0)}
    >>> after = decide(MergeTerms(Fixed("3s")), MergeState(), at, Seen(), now_us=0)
    >>> after.frontier.frontier_us, after.frontier.why
    (5999999, 'slack ran out')
    """
    newest_us = _latest(one.newest_us for one in sources.values())
    merge_us = newest_us if drain else merge_point_us(sources, terms.ties)
    seen = replace(
        seen,
        now_us=now_us,
        newest_us=newest_us,
        lag_us=None if newest_us is None or merge_us is None else newest_us - merge_us,
        n_read=state.n_read,
        n_slack=state.n_slack,
    )
    slack_us, rule = terms.rule.next(state.rule, seen)
    waiting, overdue_us = _overdue(terms, state, newest_us, now_us)
    limits = {
        DRAINED if drain else "every source is past": merge_us,
        "slack ran out": None
        if newest_us is None or slack_us is None
        else max(newest_us - slack_us - 1, FIRST_US),  # slack-ready is strict: > slack
        "held too long": overdue_us,
        "as before": state.frontier.frontier_us,
    }
    frontier_us = _latest(limits.values())
    why = next((why for why, us in limits.items() if us == frontier_us), "")
    return state.model_copy(
        update={
            "frontier": Frontier(
                frontier_us=frontier_us,
                merge_us=merge_us,
                newest_us=newest_us,
                slack_us=slack_us,
                why=why if frontier_us is not None else _waits_for(sources),
            ),
            "waiting": tuple(w for w in waiting if frontier_us is None or w[1] > frontier_us),
            "rule": rule,
        }
    )


def merge_point_us(sources: Mapping[str, SourceState], ties: frozenset[str]) -> int | None:
    """The newest time every source that still speaks has moved past; None if one has not begun.

    When all are idle nobody is waited for, and it is the newest of all.
    """
    newest = {name: one.newest_us for name, one in sources.items()}
    awaited = {name: newest[name] for name, one in sources.items() if not one.idle}
    if not awaited:
        return _latest(newest.values())
    if any(us is None for us in awaited.values()):
        return None
    return min(us - (name in ties) for name, us in awaited.items() if us is not None)


def _overdue(
    terms: MergeTerms, state: MergeState, newest_us: int | None, now_us: int
) -> tuple[tuple[tuple[int, int], ...], int | None]:
    """The batches still waiting, and the newest event among those that have waited too long."""
    if terms.hold_at_most_us is None:
        return (), None
    waiting = state.waiting
    if newest_us is not None and all(us < newest_us for _, us in waiting):
        waiting = (*waiting, (now_us, newest_us))
    due = [us for came_us, us in waiting if now_us - came_us >= terms.hold_at_most_us]
    return waiting, max(due, default=None)


def _waits_for(sources: Mapping[str, SourceState]) -> str:
    silent = [name for name, one in sources.items() if one.newest_us is None]
    return f"waits for {', '.join(silent)}"


def _latest(times_us: Any) -> int | None:
    return max((us for us in times_us if us is not None), default=None)


def in_words(frontier: Frontier) -> str:
    """The decision in words."""
    slack = "for ever" if frontier.slack_us is None else show_us(frontier.slack_us)
    return f"{frontier.why}; slack {slack}"
