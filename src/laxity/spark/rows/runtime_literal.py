"""Numbers that are others in every batch, in code that stays the same.

Spark writes a number into the Java code it generates for a job, so a new number means new code:
compiled anew, and slow until Java has warmed to it. A number inside an array is handed to the code
instead, as long as its place there is not known beforehand.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

_EVENT_US = "unix_micros(_event)"


def runtime_literal(value: int, beside: Column | None = None) -> Column:
    """The value in every row, beside a whole number that is never null; by default the event's."""
    if beside is None:
        return F.expr(runtime_sql(value))
    number = F.lit(value).cast("bigint")
    return F.get(F.array(number, number), beside.bitwiseAND(1).cast("int"))


def runtime_sql(value: int, beside: str = _EVENT_US) -> str:
    """The same as SQL: one call of Java, where an expression of columns takes one for each part.

    >>> runtime_sql(7, "h.lo")
    'get(array(7L, 7L), CAST(h.lo & 1 AS INT))'
    """
    return f"get(array({value}L, {value}L), CAST({beside} & 1 AS INT))"
