"""The versions of Spark that will do, and what the older of them lack.

Each difference is dealt with in one place, where it says which version it is about.
"""

import re

import pyspark

OLDEST, NEWEST = (4, 0), (4, 3)

LACKS = (
    (
        (4, 2),
        "a trace comes whole: `rows_per_batch` is not heeded, and a paced replay cannot go on "
        "after a restart",
    ),
    ((4, 1), "state tables at hand are shuffled again where they come in several chunks"),
    ((4, 1), "large merges read their rows twice to put them in order"),
)


def spark_version(text: str = pyspark.__version__) -> tuple[int, int]:
    """The first two numbers of a version, by default of the installed one's.

    >>> spark_version("4.1.0.dev3")
    (4, 1)
    """
    major, minor = re.findall(r"\d+", text)[:2]
    return int(major), int(minor)


def lacking(version: tuple[int, int]) -> list[str]:
    """What a user of this version has to do without.

    >>> lacking(NEWEST)
    []
    """
    return [what for since, what in LACKS if version < since]
