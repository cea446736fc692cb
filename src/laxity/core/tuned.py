"""The slack rule that starts from a deadline: the merges of a query under one tuner.

`Tuned` is the rule of a query with one merge, `Shared` that of each merge if there are several.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from laxity.core.estimator import FitNow, Fitting
from laxity.core.history import Points, load_history
from laxity.core.operators import Graph, Operator
from laxity.core.slack import Memory, Seen
from laxity.core.tuner import Tuner
from laxity.durations import Duration, duration_us, show_us
from laxity.errors import ConfigError

MERGE = "merge"  # in a history: the query's merge, the last one if there are several
SEEN = "seen"  # where a merge that does not decide leaves what it saw


@dataclass(frozen=True)
class Tuned:
    """As much slack as the deadline leaves, found by predicting what slack does.

    `deadline` is from a row's arrival until its result is out: waiting, the batch and processing
    all count. `alpha` is the share of it that must be left before more slack is tried; `history` a
    file of `laxity.core.history` or its points. With a seed the same input gives the same slacks.

    >>> rule = Tuned("6s")
    >>> rule.next({}, Seen())[0]  # cold
    1500000
    """

    grid: ClassVar[tuple[float, ...]] = ()

    deadline: Duration
    alpha: float = 0.5
    history: str | Path | Points | None = None
    seed: int = 0
    window: Duration = "0s"
    fitting: Fitting | None = field(default=None, repr=False)
    tuner: Tuner = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tuner", self.tuner_of({}))

    def tuner_of(self, before: Mapping[str, tuple[str, ...]]) -> Tuner:
        """The tuner of a query with several merges.

        `before` tells which merges each one takes in, and names those first; the last is `MERGE`.
        """
        window_us = duration_us(self.window, "window")
        graph = {
            name: Operator(tuple((one, 0) for one in taken), window_us=window_us)
            for name, taken in (before or {MERGE: ()}).items()
        }
        history = self.history or ()
        points = {MERGE: history} if isinstance(history, tuple) else load_history(history)
        return Tuner(
            Graph(graph),
            duration_us(self.deadline, "deadline"),
            self.alpha,
            FitNow(self.seed) if self.fitting is None else self.fitting,
            points,
        )

    def next(self, memory: Memory, seen: Seen) -> tuple[int | None, Memory]:
        """The slack the tuner has for its one merge."""
        slacks_us, memory = self.tuner.next(memory, {MERGE: seen})
        return slacks_us[MERGE], memory

    def hold_us(self, batch_us: int) -> int:
        """How long by the clock a row may be held, should event time stand still.

        It waits for its own batch, for the one that lets it go, and for the end of that one.

        >>> Tuned("6s").hold_us(1_000_000), Tuned("6s").hold_us(3_000_000)
        (3000000, 1500000)
        """
        return max(self.tuner.deadline_us - 3 * batch_us, self.tuner.deadline_us // 4)

    def __str__(self) -> str:
        return f"tuned so that results are out within {show_us(self.tuner.deadline_us)}"


@dataclass(frozen=True)
class Shared:
    """A tuned rule as one of several merges has it; `tuner` is that of all (`Tuned.tuner_of`).

    Rows go through all merges within a batch. The last one, called `MERGE`, decides for all, from
    what it saw and `heard` of the others. Those go by what was decided in the batch before: their
    `next` is given the last one's memory.

    >>> rule = Tuned("6s")
    >>> tuner = rule.tuner_of({"jams": (), MERGE: ("jams",)})
    >>> jams, last = (Shared(rule, tuner, name) for name in ("jams", MERGE))
    >>> slack_us, saw = jams.next({}, Seen(n_rows=5))
    >>> slack_us, saw[SEEN]["n_rows"], last.hearing({"jams": Seen(n_rows=5)}).next({}, Seen())[0]
    (750000, 5, 750000)
    """

    grid: ClassVar[tuple[float, ...]] = ()

    rule: Tuned
    tuner: Tuner
    name: str
    heard: Mapping[str, Seen] = field(default_factory=dict)

    @property
    def decides(self) -> bool:
        """Whether it is the last merge's."""
        return self.name == MERGE

    def hearing(self, heard: Mapping[str, Seen]) -> "Shared":
        """The rule, told what the merges before saw."""
        return replace(self, heard=heard)

    def next(self, memory: Memory, seen: Seen) -> tuple[int | None, Memory]:
        """The slack of its merge."""
        if self.decides:
            slacks_us, memory = self.tuner.next(memory, {**self.heard, MERGE: seen})
            return slacks_us[MERGE], memory
        slacks_us = memory.get("slacks_us") or self.tuner.cold_us()
        return slacks_us[self.name], {SEEN: asdict(seen)}

    def hold_us(self, batch_us: int) -> int:
        """As for `Tuned`, shared by the merges a row goes through."""
        return self.rule.hold_us(batch_us) // self.tuner.graph.most_merges()

    def __str__(self) -> str:
        return str(self.rule)


def refuse_below_floor(deadline: Duration, batch_us: int, every_us: int = 0) -> None:
    """Refuse a deadline that no slack can keep.

    `batch_us` is what a batch takes, `every_us` how often one begins: as often as they can if 0.
    A row waits for a batch to begin, then for its end.

    >>> refuse_below_floor("300ms", 280_000)
    Traceback (most recent call last):
    laxity.errors.ConfigError: deadline 300ms is shorter than a row takes here without any slack: \
560ms, with batches that were measured to take 280ms; state more than that
    """
    deadline_us = duration_us(deadline, "deadline")
    floor_us = max(every_us, batch_us) + batch_us
    if deadline_us <= floor_us:
        raise ConfigError(
            f"deadline {show_us(deadline_us)} is shorter than a row takes here without any slack: "
            f"{show_us(floor_us)}, with batches that were measured to take {show_us(batch_us)}; "
            "state more than that"
        )
