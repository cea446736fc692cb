"""The versions of Spark that will do, and what the older of them lack.

Each difference is dealt with in one place, where it says which version it is about.
"""

import re

OLDEST, NEWEST = (4, 1), (4, 3)

LACKS = (
    ((4, 2), "rows_per_batch of a trace is not heeded: a batch takes all that has arrived"),
    ((4, 2), "a paced replay of a trace cannot go on after a restart"),
)


def spark_version(text: str | None = None) -> tuple[int, int]:
    """The first two numbers of a version, by default of the installed one's.

    >>> spark_version("4.1.0.dev3")
    (4, 1)
    """
    from pyspark import __version__ as installed

    major, minor = re.findall(r"\d+", text or installed)[:2]
    return int(major), int(minor)


def lacking(version: tuple[int, int]) -> list[str]:
    """What a user of this version has to do without.

    >>> lacking(NEWEST)
    []
    """
    return [what for since, what in LACKS if version < since]
