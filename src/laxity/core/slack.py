"""How long a merge waits for its slowest source: the slack rules.

A rule sees, batch by batch, how late rows were and how long results took, and says how long rows
may wait from now on. Rules keep no state of their own: they get their memory and give it back, as
JSON values. `Fixed`, `MaxDelay` and `Tcp` are those the seed compares with (Slack-ScaleGate, §6),
`Quantile` is the rule of other engines. `Tuned`, which starts from a deadline, is in
`laxity.core.tuned`.

A row's *lateness* is how far it lies behind the newest event of all sources before its batch came.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Protocol

from laxity.durations import Duration, duration_us, show_us
from laxity.errors import ConfigError

Memory = dict[str, Any]

GRID = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
STEP_US = 1_000_000  # what Tcp adds when latency falls
ENOUGH_ROWS = 250  # before a quantile means anything
RECENT_ROWS = 10_000  # what Quantile looks back on,
RECENT_BATCHES = 500  # and how many batches of them it remembers at most
TUNED = "tuned:"  # and a deadline


@dataclass(frozen=True)
class Seen:
    """What a rule may know of one batch.

    `lateness_us` are the quantiles of the rows' lateness at the rule's `grid`, empty without rows.
    `latency_us` is how long the newest results took, if there were any. The rest is filled in by
    `laxity.core.merge.decide`: the time it is, the newest event of all, how far the slowest source
    that still speaks is behind it (None if one has not begun), and of the batch before, how many
    rows it read and how many of them early, for lack of slack.
    """

    n_rows: int = 0
    lateness_us: tuple[int, ...] = ()
    latency_us: int | None = None
    now_us: int = 0
    newest_us: int | None = None
    lag_us: int | None = None
    n_read: int = 0
    n_slack: int = 0


class SlackRule(Protocol):
    """Anything that says how long to wait; `grid` are the quantiles of lateness it looks at."""

    @property
    def grid(self) -> tuple[float, ...]:
        """Between 0 and 1, rising; empty for none."""

    def next(self, memory: Memory, seen: Seen) -> tuple[int | None, Memory]:
        """The slack in microseconds (None: wait for ever), and the memory for next time."""


@dataclass(frozen=True)
class Fixed:
    """Always the same slack; None waits for every source, however long (ScaleGate).

    >>> Fixed("3s").next({}, Seen())
    (3000000, {})
    """

    grid: ClassVar[tuple[float, ...]] = ()

    slack: Duration | None
    slack_us: int | None = field(init=False)

    def __post_init__(self) -> None:
        us = None if self.slack is None else duration_us(self.slack, "slack")
        object.__setattr__(self, "slack_us", us)

    def next(self, memory: Memory, seen: Seen) -> tuple[int | None, Memory]:
        """The slack it was made with."""
        return self.slack_us, memory

    def __str__(self) -> str:
        return "until every source is past" if self.slack_us is None else show_us(self.slack_us)


@dataclass(frozen=True)
class MaxDelay:
    """The largest lateness ever seen.

    >>> MaxDelay().next({"max_us": 5}, Seen(2, (9,)))
    (9, {'max_us': 9})
    """

    grid: ClassVar[tuple[float, ...]] = (1.0,)

    def next(self, memory: Memory, seen: Seen) -> tuple[int | None, Memory]:
        """The largest lateness so far."""
        max_us = max(memory.get("max_us", 0), *seen.lateness_us[-1:], 0)
        return max_us, {"max_us": max_us}

    def __str__(self) -> str:
        return "the largest lateness seen"


@dataclass(frozen=True)
class Tcp:
    """Halved when latency rises, a second more when it falls.

    >>> rule = Tcp("4s")
    >>> slack_us, memory = rule.next({}, Seen(latency_us=10))
    >>> rule.next(memory, Seen(latency_us=11))[0], rule.next(memory, Seen(latency_us=9))[0]
    (2000000, 5000000)
    """

    grid: ClassVar[tuple[float, ...]] = ()

    start: Duration = "1s"

    def __post_init__(self) -> None:
        duration_us(self.start, "start")

    def next(self, memory: Memory, seen: Seen) -> tuple[int | None, Memory]:
        """The slack after looking at the newest latency."""
        slack_us = memory.get("slack_us", duration_us(self.start))
        before_us, now_us = memory.get("latency_us"), seen.latency_us
        if before_us is not None and now_us is not None and now_us != before_us:
            slack_us = slack_us // 2 if now_us > before_us else slack_us + STEP_US
        latency_us = before_us if now_us is None else now_us
        return slack_us, {"slack_us": slack_us, "latency_us": latency_us}

    def __str__(self) -> str:
        return f"from {self.start}, halved when latency rises, 1s more when it falls"


@dataclass(frozen=True)
class Quantile:
    """A quantile of the lateness of recent rows, within bounds; the upper one until 250 rows came.

    >>> rule = Quantile(0.5, at_least="1us", at_most="1s")
    >>> rule.next({}, Seen(10, tuple(range(11))))[0], rule.next({}, Seen(400, tuple(range(11))))[0]
    (1000000, 2)
    """

    grid: ClassVar[tuple[float, ...]] = GRID

    q: float = 0.95
    at_least: Duration = "50ms"
    at_most: Duration = "7d"

    def __post_init__(self) -> None:
        if not 0 < self.q <= 1:
            raise ConfigError(f"q must lie in (0, 1], got {self.q}")
        if duration_us(self.at_least, "at_least") > duration_us(self.at_most, "at_most"):
            raise ConfigError(f"at_least {self.at_least} is more than at_most {self.at_most}")

    def next(self, memory: Memory, seen: Seen) -> tuple[int | None, Memory]:
        """The quantile of what is remembered."""
        batches: list[list[int]] = list(memory.get("batches", []))
        if seen.lateness_us:
            batches.append([seen.n_rows, *seen.lateness_us])
        del batches[:-RECENT_BATCHES]
        while batches and sum(n for n, *_ in batches[1:]) >= RECENT_ROWS:
            del batches[0]
        low_us, high_us = duration_us(self.at_least), duration_us(self.at_most)
        if sum(n for n, *_ in batches) < ENOUGH_ROWS:
            return high_us, {"batches": batches}
        return min(max(self._of(batches), low_us), high_us), {"batches": batches}

    def _of(self, batches: list[list[int]]) -> int:
        """The smallest lateness that a share q of the rows does not exceed."""
        shares = [0.0, *(high - low for low, high in pairwise(GRID))]
        points = sorted(
            (us, n * share)
            for n, *lateness_us in batches
            for us, share in zip(lateness_us, shares, strict=True)
        )
        wanted, mass = self.q * sum(n for n, *_ in batches), 0.0
        for us, weight in points:
            mass += weight
            if mass >= wanted * (1 - 1e-9):  # shares are floats
                return us
        return points[-1][0]

    def __str__(self) -> str:
        return f"the {self.q:.4g} quantile of lateness, {self.at_least} to {self.at_most}"


def parse_slack(text: str) -> SlackRule:
    """The rule a word or a duration stands for.

    >>> str(parse_slack("2s")), str(parse_slack("none")), parse_slack("quantile")
    ('2s', 'until every source is past', Quantile(q=0.95, at_least='50ms', at_most='7d'))
    >>> str(parse_slack("tuned:6s"))
    'tuned so that results are out within 6s'
    """
    from laxity.core.tuned import Tuned  # it is a slack rule itself

    rules: dict[str, Callable[[], SlackRule]] = {
        "none": lambda: Fixed(None),
        "max-delay": MaxDelay,
        "tcp": Tcp,
        "quantile": Quantile,
    }
    if text in rules:
        return rules[text]()
    if text.startswith(TUNED):
        return Tuned(text.removeprefix(TUNED))
    try:
        return Fixed(text)
    except ConfigError as error:
        raise ConfigError(
            f'slack must be a duration like "2s", a deadline like "tuned:6s" '
            f"or one of {', '.join(rules)}; got {text!r}"
        ) from error
