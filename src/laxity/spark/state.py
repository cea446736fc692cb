"""State tables: rows a pipeline keeps from one micro-batch to the next.

A table is a list of *segments*, each the Parquet folder one batch wrote. `replace` starts the list
anew; `append` adds to it and now and then folds small segments into one, so that n appends leave
about log n segments and every row is rewritten about log n times. Rows may be sorted into buckets
(by event time, say): `expire` then forgets whole buckets without touching the others. Buckets are
folders, good for few and large ones; or a column, good for many and small ones, whose rows go when
they are next folded, or with their segment.

Nothing that a committed batch refers to is ever changed: writes go to folders of their own, and
`sweep` deletes only what no kept commit refers to.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from laxity.errors import StateError
from laxity.spark.aside import Asides
from laxity.spark.changing import changing
from laxity.spark.checkpoint import Commit, Segment, Table
from laxity.spark.files import Files

FAN = 4  # so many segments of one level become one of the next
BUCKET = "_bucket"
_MARK_DONE = "mapreduce.fileoutputcommitter.marksuccessfuljobs"  # a commit says what is done


@dataclass(frozen=True)
class _Write:
    rows: DataFrame
    path: str
    folders: bool


class Tables:
    """The state tables as one batch sees them: read the last commit's, plan this batch's."""

    def __init__(
        self, spark: SparkSession, files: Files, committed: dict[str, Table], batch_id: int
    ) -> None:
        self._spark = spark
        self._files = files
        self._committed = committed
        self._next = dict(committed)
        self._batch_id = batch_id
        self._writes: dict[str, _Write] = {}
        self._begun: dict[str, Callable[[], None]] = {}

    def read(self, name: str) -> DataFrame | None:
        """The rows of a table as of the last commit; None if nothing is left of it."""
        table = self._committed.get(name)
        if table is None or not table.segments:
            return None
        return read_table(self._spark, self._files, name, table)

    def replace(self, name: str, rows: DataFrame) -> None:
        """Make these the table's only rows."""
        self._plan(name, rows, Table(columns=_columns(rows)), level=0)

    def append(
        self, name: str, rows: DataFrame, bucket: Column | None = None, newest: int | None = None
    ) -> None:
        """Add rows; `bucket` is a whole number by which they can be expired later.

        Each bucket becomes a folder, unless `newest` tells the largest bucket among the rows.
        """
        if bucket is not None:
            rows = rows.withColumn(BUCKET, bucket.cast(LongType()))
        table = self._committed.get(name) or Table(columns=_columns(rows))
        if table.columns != _columns(rows):
            raise StateError(
                f"state table {name} has columns {_names(table.columns)}, rows to append have "
                f"{_names(_columns(rows))}: a changed pipeline needs a checkpoint of its own"
            )
        kept, folded, level = fold(table.segments)
        if folded:
            old = table.model_copy(update={"segments": folded})
            rows = read_table(self._spark, self._files, name, old).unionByName(rows)
        newest = None if newest is None else max([newest, *(s.newest or newest for s in folded)])
        self._plan(name, rows, table.model_copy(update={"segments": kept}), level, newest)

    def expire(self, name: str, before: int) -> None:
        """Forget the buckets below `before`; their files go once no commit needs them."""
        table = self._next.get(name)
        if table is None:
            return
        floor = before if table.floor is None else max(before, table.floor)
        alive = tuple(s for s in table.segments if s.newest is None or s.newest >= floor)
        self._next[name] = table.model_copy(update={"floor": floor, "segments": alive})

    def _plan(
        self, name: str, rows: DataFrame, table: Table, level: int, newest: int | None = None
    ) -> None:
        if name in self._writes:
            raise StateError(f"state table {name} was written twice in batch {self._batch_id}")
        segment = Segment(batch_id=self._batch_id, level=level, newest=newest)
        self._next[name] = table.model_copy(update={"segments": (*table.segments, segment)})
        path = f"{self._files.uri}/{_folder(name, segment)}"
        self._writes[name] = _Write(rows, path, BUCKET in rows.columns and newest is None)

    def begin(self, name: str, aside: Asides) -> None:
        """Begin to write what was planned for a table, beside all that is still to be decided."""
        self._begun[name] = aside.begin(partial(_save, self._writes[name]))

    def write(self, aside: Asides) -> Callable[[], None]:
        """Begin to carry out what was planned, side by side; what comes back waits for it."""
        for name in self._writes:
            if name not in self._begun:
                self.begin(name, aside)

        def wait() -> None:
            for result in self._begun.values():
                result()

        return wait

    @property
    def next(self) -> dict[str, Table]:
        """The tables as they will be once this batch is committed."""
        return self._next


def fold(segments: tuple[Segment, ...]) -> tuple[tuple[Segment, ...], tuple[Segment, ...], int]:
    """What an append does to older segments: those kept, those folded in, the new one's level.

    >>> one = [Segment(batch_id=n) for n in range(3)]
    >>> fold(tuple(one))[1:] == (tuple(one), 1)
    True
    """
    cut, level = len(segments), 0
    while cut >= FAN - 1 and all(s.level == level for s in segments[cut - FAN + 1 : cut]):
        cut, level = cut - FAN + 1, level + 1
    return segments[:cut], segments[cut:], level


def read_table(spark: SparkSession, files: Files, name: str, table: Table) -> DataFrame:
    """The rows of a table as one commit describes it; reads no footer, runs no job."""
    schema = StructType.fromJson(table.columns)
    paths = [f"{files.uri}/{_folder(name, segment)}" for segment in table.segments]
    reader = spark.read.schema(schema)
    if all(segment.newest is not None for segment in table.segments):
        rows = reader.parquet(*paths)
        floor = None if table.floor is None else changing(table.floor, F.col(BUCKET))
    else:  # folders named after buckets: the plain number lets Spark skip them
        rows = reduce(DataFrame.union, map(reader.parquet, paths))
        floor = None if table.floor is None else F.lit(table.floor)
    return rows if floor is None else rows.where(F.col(BUCKET) >= floor)


def sweep(files: Files, kept: Iterable[Commit]) -> None:
    """Delete every segment and bucket that none of the kept commits refers to."""
    commits = list(kept)
    for name in files.names("state"):
        tables = [commit.tables[name] for commit in commits if name in commit.tables]
        alive = {str(segment.batch_id) for table in tables for segment in table.segments}
        floors = [table.floor for table in tables]
        for folder in files.names(f"state/{name}"):
            if folder not in alive:
                files.delete(f"state/{name}/{folder}")
            elif None not in floors:
                _drop_buckets(
                    files, f"state/{name}/{folder}", min(f for f in floors if f is not None)
                )


def _drop_buckets(files: Files, folder: str, floor: int) -> None:
    for name in files.names(folder):
        column, _, bucket = name.partition("=")
        if column == BUCKET and int(bucket) < floor:
            files.delete(f"{folder}/{name}")


def _save(write: _Write) -> None:
    writer = write.rows.write.mode("overwrite").option(_MARK_DONE, "false")
    (writer.partitionBy(BUCKET) if write.folders else writer).parquet(write.path)


def _folder(name: str, segment: Segment) -> str:
    return f"state/{name}/{segment.batch_id}"


def _columns(rows: DataFrame) -> dict[str, object]:
    """The rows' schema as JSON, as it will read back: every column may be null."""
    schema = StructType([field for field in rows.schema if field.name != BUCKET])
    if BUCKET in rows.columns:
        schema = schema.add(BUCKET, LongType())
    return StructType.fromJson(_nullable(schema.jsonValue())).jsonValue()


def _nullable(node: object) -> dict[str, object]:
    def walk(value: object) -> object:
        if isinstance(value, dict):
            always = {"nullable", "containsNull", "valueContainsNull"}
            return {k: True if k in always else walk(v) for k, v in value.items()}
        return [walk(item) for item in value] if isinstance(value, list) else value

    walked = walk(node)
    assert isinstance(walked, dict)
    return walked


def _names(columns: dict[str, object]) -> str:
    return ", ".join(field.name for field in StructType.fromJson(columns))
