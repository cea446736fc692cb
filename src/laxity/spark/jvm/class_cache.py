"""Java's names, looked up once.

Whenever PySpark builds an expression it asks Java what `functions` is, or `PythonUtils`, and Java
looks through all its archives: more than a thousand times for a few dozen batches. Here the answer
is remembered where PySpark looks first.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonUtils")


class _Known:
    """A Java class whose members are looked up once."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._java_class, name)
        setattr(self, name, member)
        return member


def remember(spark: "SparkSession") -> None:
    """Look up, for good, the classes PySpark asks for most often."""
    jvm: Any = spark._jvm
    for name in CLASSES:
        if name not in vars(jvm):
            vars(jvm)[name] = _Known(getattr(jvm, name))
