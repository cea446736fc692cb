"""Where results go, and how often each can come.

A sink is *exactly once* if writing a batch again replaces what the first try left. One that cannot
do that says so in the contract. Before the first batch every sink is opened with the last
committed batch and forgets whatever a crash left beyond it.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from laxity.errors import ConfigError, ContractWarning
from laxity.spark.storage.files import Files, open_files
from laxity.spark.storage.parquet_writer import write_parquet, write_whole


@dataclass
class ParquetSink:
    """A folder of Parquet files, `batch_id=N` for batch N; exactly once."""

    path: str
    one_pass: bool = True
    delivery: str = "exactly once"
    _files: Files | None = field(default=None, repr=False)

    def open(self, spark: SparkSession, checkpoint_id: str, last_id: int) -> None:
        """Claim the folder for this checkpoint."""
        self._files = files = open_files(self.path, spark)
        owner = files.read("_laxity")
        if owner is None and files.names():
            raise ConfigError(
                f"{self.path} holds files that no Laxity query wrote: use another path"
            )
        if owner not in (None, checkpoint_id.encode()):
            raise ConfigError(
                f"{self.path} holds the results of another checkpoint: use another path, or the "
                "checkpoint they were written with, or delete the folder"
            )
        files.write("_laxity", checkpoint_id.encode())
        for name in files.names():
            if name.startswith("batch_id=") and int(name.removeprefix("batch_id=")) > last_id:
                files.delete(name)

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Write one batch into a folder of its own."""
        assert self._files is not None
        write_parquet(rows, self._files, f"batch_id={batch_id}")

    def forget(self, batch_id: int) -> None:
        """Remove the batch's folder."""
        assert self._files is not None
        self._files.delete(f"batch_id={batch_id}")

    def __str__(self) -> str:
        return f"parquet({self.path})"


@dataclass
class TableSink:
    """A catalog table partitioned by `batch_id`; exactly once."""

    name: str
    one_pass: bool = True
    delivery: str = "exactly once"
    _spark: SparkSession | None = field(default=None, repr=False)

    def open(self, spark: SparkSession, checkpoint_id: str, last_id: int) -> None:
        """Refuse a catalog that would forget the table; drop what was not committed."""
        self._spark = spark
        kind = spark.conf.get("spark.sql.catalogImplementation", "in-memory")
        ours = spark.catalog.currentCatalog() == "spark_catalog" and self.name.count(".") < 2  # noqa: PLR2004
        if kind == "in-memory" and ours:
            raise ConfigError(
                f"table {self.name} would be forgotten with this Spark session, which has no "
                "metastore: use laxity.parquet(path), or start the session with "
                'laxity.session(conf={"spark.sql.catalogImplementation": "hive"})'
            )
        if spark.catalog.tableExists(self.name):
            columns = [column.name for column in spark.catalog.listColumns(self.name)]
            if "batch_id" not in columns:
                raise ConfigError(
                    f"table {self.name} has no column batch_id: use a table of its own"
                )
            self.forget(last_id + 1)

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Replace the batch's partition."""
        spark = rows.sparkSession
        if not spark.catalog.tableExists(self.name):
            columns = rows.schema.toDDL()
            spark.sql(
                f"CREATE TABLE {self.name} ({columns}, batch_id BIGINT) "
                "USING parquet PARTITIONED BY (batch_id)"
            )
        columns = ", ".join(f"`{name}`" for name in rows.columns)
        into = f"INSERT OVERWRITE {self.name} PARTITION (batch_id = {batch_id})"
        write_whole(
            rows,
            f"table {self.name}",
            lambda rows: spark.sql(f"{into} SELECT {columns} FROM {{rows}}", rows=rows),
            lambda: spark.table(self.name).where(f"batch_id = {batch_id}").count(),
        )

    def forget(self, batch_id: int) -> None:
        """Drop the batch's partition."""
        assert self._spark is not None
        self._spark.sql(f"ALTER TABLE {self.name} DROP IF EXISTS PARTITION (batch_id = {batch_id})")

    def __str__(self) -> str:
        return f"table({self.name})"


@dataclass
class MemorySink:
    """Results in this Python process, for tests and notebooks; gone when it ends."""

    one_pass: bool = True
    delivery: str = "exactly once while this process lives"
    batches: dict[int, Any] = field(default_factory=dict, repr=False)

    def open(self, spark: SparkSession, checkpoint_id: str, last_id: int) -> None:
        """Forget what was not committed."""
        self.batches = {n: table for n, table in self.batches.items() if n <= last_id}

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Keep the batch as an Arrow table."""
        self.batches[batch_id] = rows.toArrow()

    def forget(self, batch_id: int) -> None:
        """Drop the batch."""
        self.batches.pop(batch_id, None)

    def table(self) -> Any:
        """All results so far as one Arrow table, in batch order; None before the first."""
        tables = [self.batches[n] for n in sorted(self.batches)]
        return pa.concat_tables(tables, promote_options="default") if tables else None

    def rows(self) -> list[dict[str, Any]]:
        """All results so far as dictionaries."""
        table = self.table()
        return [] if table is None else table.to_pylist()

    def __str__(self) -> str:
        return "memory"


@dataclass
class ConsoleSink:
    """The first rows of every batch, printed."""

    n_rows: int = 20
    one_pass: bool = False
    delivery: str = "at least once (a batch run again after a crash is printed again)"

    def open(self, spark: SparkSession, checkpoint_id: str, last_id: int) -> None:
        """Nothing to prepare."""

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Print the batch."""
        print(f"batch {batch_id}")  # noqa: T201
        rows.show(self.n_rows, truncate=False)

    def forget(self, batch_id: int) -> None:
        """What is printed stays printed."""

    def __str__(self) -> str:
        return f"console({self.n_rows} rows)"


@dataclass
class ForeachSink:
    """The user's own function of (rows, batch_id)."""

    fn: Callable[[DataFrame, int], None]
    idempotent: bool = False
    one_pass: bool = False
    delivery: str = ""

    def __post_init__(self) -> None:
        self.delivery = (
            "exactly once (the function says it may be called again for the same batch_id)"
            if self.idempotent
            else "at least once (after a crash it may be called again for the same batch_id)"
        )

    def open(self, spark: SparkSession, checkpoint_id: str, last_id: int) -> None:
        """Say so if a crash can repeat results."""
        if not self.idempotent:
            warnings.warn(
                f"sink {self} cannot be exactly once: after a crash it may see a batch_id twice. "
                "Overwrite by batch_id and say laxity.foreach(fn, idempotent=True), or use "
                "laxity.parquet or laxity.table",
                ContractWarning,
                stacklevel=2,
            )

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Call the function."""
        self.fn(rows, batch_id)

    def forget(self, batch_id: int) -> None:
        """The function overwrites by batch_id, or accepts repeats."""

    def __str__(self) -> str:
        return f"foreach({getattr(self.fn, '__name__', 'function')})"


def parquet(path: str) -> ParquetSink:
    """Write results as Parquet, exactly once; read them with `spark.read.parquet(path)`.

    Parameters
    ----------
    path
        A folder of its own, local or on any file system that Hadoop knows. Batch N is its folder
        `batch_id=N`.

    >>> sink = parquet("out/jams")
    >>> print(sink, "·", sink.delivery)
    parquet(out/jams) · exactly once
    """
    return ParquetSink(str(path))


def table(name: str) -> TableSink:
    """Write results to a catalog table, exactly once.

    Parameters
    ----------
    name
        The table, made if it is not there, with a partition for each `batch_id`. Its catalog must
        outlive the session.

    >>> print(table("town.jams"))
    table(town.jams)
    """
    return TableSink(name)


def memory() -> MemorySink:
    """Keep results in this process, for tests and notebooks.

    Returns
    -------
    MemorySink
        For `Stream.start`; `.rows()` gives the results as dictionaries, `.table()` as Arrow.

    >>> memory().rows()
    []
    """
    return MemorySink()


def console(n_rows: int = 20) -> ConsoleSink:
    """Print the first rows of every batch.

    Parameters
    ----------
    n_rows
        How many.

    >>> print(console(5))
    console(5 rows)
    """
    return ConsoleSink(n_rows)


def foreach(fn: Callable[[DataFrame, int], None], *, idempotent: bool = False) -> ForeachSink:
    """Hand every batch's results to a function.

    Parameters
    ----------
    fn
        Called with the rows, a DataFrame, and the batch_id.
    idempotent
        Calling it again with the same batch_id replaces what the first call did.

    Returns
    -------
    ForeachSink
        For `Stream.start`; exactly once if idempotent, else a warning says that it is not.

    >>> foreach(print).delivery
    'at least once (after a crash it may be called again for the same batch_id)'
    """
    return ForeachSink(fn, idempotent)
