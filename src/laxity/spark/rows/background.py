"""Jobs of one batch that run side by side.

A micro-batch is mostly waiting for small jobs, so those that do not need each other's results run
at the same time. All have ended before the batch is over, however it ends: a job left behind could
write into a folder that the batch's next try writes anew.
"""

from collections.abc import Callable
from typing import TypeVar

from pyspark import InheritableThread

T = TypeVar("T")


class BackgroundJobs:
    """The jobs a batch has running beside the main one."""

    def __init__(self) -> None:
        self._threads: list[InheritableThread] = []
        self._at_end: list[Callable[[], object]] = []

    def start(self, job: Callable[[], T]) -> Callable[[], T]:
        """Start a job; what comes back waits for its result, or raises its error."""
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(job())
            except BaseException as error:
                errors.append(error)

        thread = InheritableThread(target=run)
        self._threads.append(thread)
        thread.start()

        def result() -> T:
            thread.join()
            if errors:
                raise errors[0]
            return results[0]

        return result

    def at_end(self, what: Callable[[], object]) -> None:
        """Do it when all have ended."""
        self._at_end.append(what)

    def end(self) -> None:
        """Wait until all have ended; errors are for those who ask for the results."""
        for thread in self._threads:
            thread.join()
        for what in self._at_end:
            what()
