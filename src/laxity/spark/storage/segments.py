"""How rows of state tables lie in folders.

A table is a list of *segments*, each what one batch wrote: a Parquet folder of its own, or one that
several small tables share and one job writes. There every row is one table's, in a column of the
table's name.
"""

from collections.abc import Iterable, Mapping
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from laxity.spark.rows.columns import quoted_name
from laxity.spark.rows.runtime_literal import runtime_sql
from laxity.spark.storage.commit import Commit, Segment, Table
from laxity.spark.storage.files import Files

FAN = 4  # so many segments of one level become one of the next


def fold(segments: tuple[Segment, ...]) -> tuple[tuple[Segment, ...], tuple[Segment, ...], int]:
    """What an append does to older segments: those kept, those folded in, the new one's level.

    >>> one = [Segment(batch_id=n, at=f"state/t/{n}") for n in range(3)]
    >>> fold(tuple(one))[1:] == (tuple(one), 1)
    True
    """
    cut, level = len(segments), 0
    while cut >= FAN - 1 and all(s.level == level for s in segments[cut - FAN + 1 : cut]):
        cut, level = cut - FAN + 1, level + 1
    return segments[:cut], segments[cut:], level


def read_table(spark: SparkSession, files: Files, table: Table) -> DataFrame:
    """The rows of a table as one commit describes it; reads no footer, runs no job."""
    columns = StructType.fromJson(table.columns)
    places: dict[str | None, list[str]] = {}
    for segment in table.segments:
        places.setdefault(segment.column, []).append(f"{files.uri}/{segment.at}")
    parts = [_read(spark, columns, column, paths) for column, paths in places.items()]
    return unexpired(reduce(DataFrame.unionByName, parts), table)


def _read(
    spark: SparkSession, columns: StructType, column: str | None, paths: list[str]
) -> DataFrame:
    """The rows in some folders, which are those of one table or share a column of its own."""
    if column is None:
        return spark.read.schema(columns).parquet(*paths)
    shared = spark.read.schema(StructType([StructField(column, columns)])).parquet(*paths)
    own = quoted_name(column)
    return shared.where(f"{own} IS NOT NULL").selectExpr(f"{own}.*")


def sharing(tables: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of several tables as they lie in the folder they share."""
    each = [rows.select(F.struct("*").alias(name)) for name, rows in tables.items()]
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), each)


def unexpired(rows: DataFrame, table: Table) -> DataFrame:
    """Those of the rows that are not below the table's floor."""
    if table.floor is None or table.expire_by is None:
        return rows
    return rows.where(f"{table.expire_by} >= {runtime_sql(table.floor, table.expire_by)}")


def sweep(files: Files, kept: Iterable[Commit]) -> None:
    """Delete every segment that none of the kept commits refers to."""
    tables = [table for commit in kept for table in commit.tables.values()]
    alive = {segment.at for table in tables for segment in table.segments}
    for folder in files.names("state"):
        for batch in files.names(f"state/{folder}"):
            if (place := path_of(folder, batch)) not in alive:
                files.delete(place)


def path_of(folder: str, batch: int | str) -> str:
    """Where the rows lie that a batch wrote into a folder."""
    return f"state/{folder}/{batch}"


def columns_of(rows: DataFrame) -> dict[str, object]:
    """The rows' schema as JSON, as it will read back: every column may be null."""
    return _nullable(rows.schema.jsonValue())


def _nullable(node: object) -> dict[str, object]:
    def walk(value: object) -> object:
        if isinstance(value, dict):
            always = {"nullable", "containsNull", "valueContainsNull"}
            return {k: True if k in always else walk(v) for k, v in value.items()}
        return [walk(item) for item in value] if isinstance(value, list) else value

    walked = walk(node)
    assert isinstance(walked, dict)
    return walked
