"""The columns that Laxity adds to rows, and how columns are named in SQL."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

RANK = "_rank"  # a source's name as a number, which costs a third less to keep
CAME = "_came"  # when a row came to a merge, where that is not when it arrived
OWN = ("_source", RANK, "_event", "_arrival", "_seq", "_read", "_dead", "_raw")
EVENT_US = "unix_micros(_event)"


def quoted(column: str) -> Column:
    """A column by its name, whatever letters that has."""
    return F.col(quoted_name(column))


def quoted_name(column: str) -> str:
    """The same as SQL.

    >>> quoted_name("a`b")
    '`a``b`'
    """
    return "`" + column.replace("`", "``") + "`"


def rank_of(names: Sequence[str]) -> str:
    """A row's source as its place among the names, as SQL.

    >>> rank_of(["bus", "scats"])
    "CAST(CASE WHEN _source = 'scats' THEN 1 ELSE 0 END AS BIGINT)"
    """
    places = "".join(f" WHEN _source = '{name}' THEN {n}" for n, name in enumerate(names) if n)
    return f"CAST({f'CASE{places} ELSE 0 END' if places else '0'} AS BIGINT)"
