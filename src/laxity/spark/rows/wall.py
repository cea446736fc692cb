"""The one place where the wall clock is read."""

import time


def now_us() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1_000
