"""What revising is compared with: sorting beforehand, waiting, discarding (TinTiN, §7).

Each takes rows in order of arrival and gives the results that follow. `SortedNoWait` is fed with
sorted rows and shows what the exact results are; `UnsortedWait` holds every row for the bound on
lateness, so its results are exact and that much later; `UnsortedDiscard` leaves out late rows.
"""

from heapq import heappop, heappush

from laxity.core.holes import BEGINNING
from laxity.sim.windows import App, Row, Running


class SortedNoWait:
    """The app itself; rows must come in order."""

    n_held = 0

    def __init__(self, app: App) -> None:
        self._running = Running(app)

    def take(self, row: Row) -> list[Row]:
        """Take in one row."""
        return self._running.take(row)


class UnsortedDiscard:
    """The app on the rows that are on time."""

    n_held = 0

    def __init__(self, app: App) -> None:
        self._running = Running(app)
        self._newest_us = BEGINNING

    def take(self, row: Row) -> list[Row]:
        """Take in one row, or leave it out."""
        if row.ts_us < self._newest_us:
            return []
        self._newest_us = row.ts_us
        return self._running.take(row)


class UnsortedWait:
    """The app on rows that are older than the bound on lateness; the others are held."""

    def __init__(self, app: App, lateness_us: int) -> None:
        self._running, self._lateness_us = Running(app), lateness_us
        self._held: list[tuple[int, int, Row]] = []
        self._n_taken, self._newest_us = 0, BEGINNING

    @property
    def n_held(self) -> int:
        """Rows that wait."""
        return len(self._held)

    def take(self, row: Row) -> list[Row]:
        """Take in one row, release those that nothing can come before."""
        self._n_taken += 1
        heappush(self._held, (row.ts_us, self._n_taken, row))
        self._newest_us = max(row.ts_us, self._newest_us)
        results: list[Row] = []
        while self._held and self._held[0][0] <= self._newest_us - self._lateness_us:
            results += self._running.take(heappop(self._held)[2])
        return results
