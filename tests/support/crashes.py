"""A crash without a process: the query fails at a point of the batch protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from laxity.spark.engine.phases import Phases


class CrashError(Exception):
    """Ends a query; what is durable then is what a killed driver leaves."""


@contextmanager
def crashing(batch: int, point: str) -> Iterator[None]:
    """Fail in that batch, before or after that phase."""
    plain, (name, _, when) = Phases.phase, point.partition(".")

    @contextmanager
    def phase(self: Phases, now: str) -> Iterator[None]:
        here = now == name and self._label.endswith(f" {batch}")
        if here and when == "enter":
            raise CrashError
        with plain(self, now):
            yield
        if here:
            raise CrashError

    with patch.object(Phases, "phase", phase):
        yield
