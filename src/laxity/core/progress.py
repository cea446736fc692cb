"""How far every source has come, and which have fallen silent.

A source is *idle* once nothing has been heard from it for `idle_after_us`; it is back the moment
it speaks. Its clock (the newest event seen) only moves forward, and only for rows that passed the
future guard: callers never show it a dead letter. Which rows may be released is not decided here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict


class Heard(BaseModel):
    """What one micro-batch brought from one source: live rows and their newest event."""

    model_config = ConfigDict(frozen=True)

    n_rows: int
    newest_us: int | None = None


class SourceState(BaseModel):
    """How far one source has come, and whether it still speaks."""

    model_config = ConfigDict(frozen=True)

    newest_us: int | None = None
    heard_us: int
    idle: bool = False


class Frontier(BaseModel):
    """How far rows may be passed on, and why so far.

    `merge_us`: every source has moved past it (rows up to it are ready). `newest_us`: the newest
    event of all. None where there is nothing to say yet.
    """

    model_config = ConfigDict(frozen=True)

    frontier_us: int | None = None
    merge_us: int | None = None
    newest_us: int | None = None
    slack_us: int | None = None
    why: str = "no source has spoken"


class Passed(BaseModel):
    """The rows a stage passed on, in time: the newest in order, and the oldest behind those."""

    model_config = ConfigDict(frozen=True)

    last_us: int | None = None
    oldest_late_us: int | None = None


class Progress:
    """The clock of every source, carried from batch to batch.

    >>> progress = Progress(["bus"], {"bus": 30_000_000}, now_us=0)
    >>> progress.advance({"bus": Heard(n_rows=2, newest_us=7)}, now_us=10)["bus"].newest_us
    7
    >>> progress.advance({}, now_us=30_000_011)["bus"].idle
    True
    """

    def __init__(
        self, sources: Sequence[str], idle_after_us: Mapping[str, int | None], now_us: int
    ) -> None:
        self._idle_after_us = dict(idle_after_us)
        self._now_us = now_us
        self._states = {name: SourceState(heard_us=now_us) for name in sources}

    def advance(self, heard: Mapping[str, Heard], now_us: int) -> dict[str, SourceState]:
        """Take in one micro-batch; the new state of every source."""
        silent = Heard(n_rows=0)
        self._now_us = now_us
        self._states = {
            name: self._next(name, state, heard.get(name, silent), now_us)
            for name, state in self._states.items()
        }
        return dict(self._states)

    def _next(self, name: str, state: SourceState, heard: Heard, now_us: int) -> SourceState:
        heard_us = now_us if heard.n_rows else state.heard_us
        clocks = [us for us in (state.newest_us, heard.newest_us) if us is not None]
        patience_us = self._idle_after_us.get(name)
        return SourceState(
            newest_us=max(clocks, default=None),
            heard_us=heard_us,
            idle=patience_us is not None and now_us - heard_us > patience_us,
        )

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON values; `restore` takes it back."""
        sources = {name: state.model_dump() for name, state in self._states.items()}
        return {"now_us": self._now_us, "sources": sources}

    def restore(self, snapshot: Mapping[str, Any], now_us: int) -> None:
        """Continue from a snapshot; sources it does not know start anew.

        The time since the snapshot was nobody's silence: a source that was behind when the
        pipeline stopped is given as long to speak as it had left.
        """
        away_us = now_us - snapshot["now_us"]
        for name in self._states.keys() & snapshot["sources"].keys():
            state = SourceState.model_validate(snapshot["sources"][name])
            self._states[name] = state.model_copy(update={"heard_us": state.heard_us + away_us})
