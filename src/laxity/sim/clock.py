"""Time that passes only when nothing is left to do now.

The clock is one heap of (time, priority, counter, action). Running it means: take the earliest
action, move to its time, do it. Ties go by priority, then by the order in which they were
scheduled, so a run is the same every time. Actions do not run in parallel and cannot be withdrawn.
"""

import heapq
from collections.abc import Callable
from itertools import count

from laxity.errors import ConfigError

Action = Callable[[], object]


class Clock:
    """A virtual clock in microseconds.

    >>> clock, seen = Clock(), []
    >>> clock.at(20, lambda: seen.append(("late", clock.now_us)))
    >>> clock.at(10, lambda: clock.after(5, lambda: seen.append(("soon", clock.now_us))))
    >>> clock.run()
    >>> seen, clock.now_us
    ([('soon', 15), ('late', 20)], 20)
    """

    def __init__(self, start_us: int = 0) -> None:
        self._now_us = start_us
        self._count = count()
        self._heap: list[tuple[int, int, int, Action]] = []

    @property
    def now_us(self) -> int:
        """The time it is."""
        return self._now_us

    @property
    def n_pending(self) -> int:
        """How many actions are still to come."""
        return len(self._heap)

    def at(self, time_us: int, action: Action, priority: int = 0) -> None:
        """Do it at a time; of several at one time, the smallest priority first.

        >>> clock, seen = Clock(), []
        >>> clock.at(7, lambda: seen.append("second"))
        >>> clock.at(7, lambda: seen.append("first"), priority=-1)
        >>> clock.run()
        >>> seen
        ['first', 'second']
        """
        self._not_past(time_us)
        heapq.heappush(self._heap, (time_us, priority, next(self._count), action))

    def after(self, delay_us: int, action: Action, priority: int = 0) -> None:
        """Do it once this much time has passed."""
        self.at(self._now_us + delay_us, action, priority)

    def every(self, period_us: int, action: Action, until_us: int, priority: int = 0) -> None:
        """Do it one period from now and then each period, up to and including `until_us`.

        >>> clock, seen = Clock(), []
        >>> clock.every(10, lambda: seen.append(clock.now_us), until_us=30)
        >>> clock.run()
        >>> seen
        [10, 20, 30]
        """
        if period_us <= 0:
            raise ConfigError(f"period_us must be > 0, got {period_us}")

        def tick() -> None:
            action()
            self.every(period_us, action, until_us, priority)

        if self._now_us + period_us <= until_us:
            self.after(period_us, tick, priority)

    def run(self, until_us: int | None = None) -> None:
        """Do everything due up to and including `until_us` and stop there; all there is if None.

        >>> clock = Clock(start_us=100)
        >>> clock.after(50, lambda: None)
        >>> clock.run(until_us=120)
        >>> clock.now_us, clock.n_pending
        (120, 1)
        """
        if until_us is not None:
            self._not_past(until_us)
        while self._heap and (until_us is None or self._heap[0][0] <= until_us):
            self._now_us, _, _, action = heapq.heappop(self._heap)
            action()
        if until_us is not None:
            self._now_us = until_us

    def _not_past(self, time_us: int) -> None:
        if time_us < self._now_us:
            raise ConfigError(
                f"time_us must not lie in the past: got {time_us}, but it is already {self._now_us}"
            )
