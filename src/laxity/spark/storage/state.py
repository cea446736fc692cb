"""State tables: rows a pipeline keeps from one micro-batch to the next.

A table is a list of *segments*, each what one batch wrote (`segments.py`). `replace` starts the
list anew; `append` adds to it and now and then folds small segments into one, so that n appends
leave about log n segments and every row is rewritten about log n times. Rows may `expire` by a
whole number of theirs (event time, say): they are not read any more, and their files go with the
segment or when it is next folded.

Nothing that a committed batch refers to is ever changed: writes go to folders of their own, and
`sweep` deletes only what no kept commit refers to.

The rows of a table may stay at hand for the batches to come (`resident.py`); they are written all
the same, and read after a restart.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from laxity.errors import StateError
from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.rows.materialize import in_one_process
from laxity.spark.rows.partitioning import ONE_TASK, coalesced
from laxity.spark.storage.commit import Segment, Table
from laxity.spark.storage.files import Files
from laxity.spark.storage.parquet_writer import write_parquet
from laxity.spark.storage.resident import MANY, Chunk, ResidentTables, rows_in
from laxity.spark.storage.segments import columns_of, fold, path_of, read_table, sharing, unexpired

Make = Callable[[], DataFrame]


@dataclass
class _Write:
    """What goes into a folder: the rows of each table in it, and whether old ones are with them."""

    tables: dict[str, Make] = field(default_factory=dict)
    shared: bool = False
    folds: bool = False


class Tables:
    """The state tables as one batch sees them: read the last commit's, plan this batch's."""

    def __init__(
        self,
        spark: SparkSession,
        files: Files,
        committed: dict[str, Table],
        batch_id: int,
        standing: ResidentTables | None = None,
    ) -> None:
        self._spark = spark
        self._files = files
        self._committed = committed
        self._next = dict(committed)
        self._batch_id = batch_id
        self._writes: dict[str, _Write] = {}
        self._begun: dict[str, Callable[[], None]] = {}
        self._opened: dict[str, DataFrame] = {}
        self._read: dict[str, DataFrame] = {}
        self._planning = threading.Lock()  # a stage may still plan while the results are written
        self._standing = standing or ResidentTables()
        self.left = ResidentTables()
        self._scope = ""

    def of(self, stage: str) -> "Tables":
        """Those of a stage: what others call theirs does not matter to it."""
        tables = copy(self)
        tables._scope = f"{stage}-"
        return tables

    def _label(self, name: str) -> str:
        return f"{self._scope}{name}"

    def read(self, name: str) -> DataFrame | None:
        """The rows of a table as of the last commit; None if nothing is left of it."""
        name = self._label(name)
        table = self._alive(name)
        if table is None:
            return None
        opened = self._opened.pop(name, None)
        return opened or read_table(self._spark, self._files, table)

    def _alive(self, name: str) -> Table | None:
        table = self._committed.get(name)
        return table if table and table.segments else None

    def at_hand(
        self,
        name: str,
        laid: Callable[[DataFrame], DataFrame],
        background: BackgroundJobs,
        beside: str | None = None,
    ) -> DataFrame | None:
        """The same, to be at hand from now on where that can be, and then lie as `laid` lays them.

        What is added to the table must lie so too. `beside` is another whose rows stay at hand with
        it, and expire like its own.
        """
        label = self._label(name)
        if label in self._read:
            return self._read[label]
        table, pieces = self._alive(label), self._standing.pieces
        if table is None:
            return None
        if not in_one_process(self._spark):
            return self._read_both(name, beside)
        if label not in pieces:
            read = self._read_both(name, beside)
            pieces[label] = (Chunk.of(laid(read), None),)
            background.start(pieces[label][0].compute)  # before its files may go
        if beside is not None:
            pieces[self._label(beside)] = ()  # its own are with the others
        self._read[label] = unexpired(rows_in(self._others(label) or pieces[label]), table)
        return self._read[label]

    def _read_both(self, name: str, beside: str | None) -> DataFrame:
        each = [self.read(one) for one in (name, beside) if one is not None]
        return reduce(DataFrame.unionByName, [rows for rows in each if rows is not None])

    def stay(
        self, name: str, new: Sequence[Chunk], background: BackgroundJobs, anew: bool = False
    ) -> None:
        """Leave at hand what this batch adds to a table, or makes its only rows `anew`.

        That is, if all others of the table are.
        """
        label = self._label(name)
        others = () if anew else self.left.pieces.get(label, self._others(label))
        if others is not None and len(others) < MANY:
            self.left.pieces[label] = (*others, *new)
            return
        if others is not None:
            rows, newest = rows_in([*others, *new]), [piece.newest for piece in (*others, *new)]
            one = Chunk.of(unexpired(rows, self._committed[label]), _last(newest))
            background.start(one.compute)
            self.left.pieces[label] = (one,)
        for piece in new:
            background.at_end(piece.release)

    def _others(self, label: str) -> tuple[Chunk, ...] | None:
        """The pieces of a table that are not expired; None if it is not at hand."""
        table = self._alive(label)
        if table is None:
            return ()
        pieces, floor = self._standing.pieces.get(label), table.floor
        if pieces is None or floor is None:
            return pieces
        return tuple(one for one in pieces if one.newest is None or one.newest >= floor)

    def open(self) -> None:
        """Make the tables ready that rows also leave again, and so are likely to be read."""
        for name, table in self._committed.items():
            wanted = table.expire_by is not None and name not in self._standing.pieces
            if table.segments and wanted:
                self._opened[name] = read_table(self._spark, self._files, table)

    def replace(self, name: str, rows: DataFrame, within: str | None = None) -> None:
        """Make these the table's only rows; they may lie `within` a folder that tables share."""
        table = Table(columns=columns_of(rows))
        self._plan(self._label(name), lambda: rows, table, within)

    def append(
        self,
        name: str,
        rows: DataFrame,
        *,
        expire_by: str | None = None,
        newest: int | None = None,
        made: Make | None = None,
        within: str | None = None,
    ) -> None:
        """Add rows.

        `expire_by`: a whole number in every row, as SQL, by which they can be expired later;
        `newest` is the largest of them. `made` gives the rows to write once they are written,
        where `rows` only have their columns. They may lie `within` a folder that tables share.
        """
        name, columns = self._label(name), columns_of(rows)
        table = self._committed.get(name) or Table(columns=columns, expire_by=expire_by)
        if table.columns != columns:
            raise StateError(
                f"state table {name} has columns {_names(table.columns)}, rows to append have "
                f"{_names(columns)}: a changed pipeline needs a checkpoint of its own"
            )
        kept, folded, level = fold(table.segments)
        newest = None if newest is None else max([newest, *(s.newest or newest for s in folded)])

        def all_rows() -> DataFrame:
            new = rows if made is None else made()
            if not folded:
                return new
            old = table.model_copy(update={"segments": folded})
            return read_table(self._spark, self._files, old).unionByName(new)

        table = table.model_copy(update={"segments": kept})
        self._plan(name, all_rows, table, within, level=level, newest=newest)

    def expire(self, name: str, before: int) -> None:
        """Forget the rows below `before`; their files go once no commit needs them."""
        name = self._label(name)
        table = self._next.get(name)
        if table is None:
            return
        floor = before if table.floor is None else max(before, table.floor)
        alive = tuple(s for s in table.segments if s.newest is None or s.newest >= floor)
        self._next[name] = table.model_copy(update={"floor": floor, "segments": alive})

    def _plan(
        self,
        name: str,
        rows: Make,
        table: Table,
        within: str | None,
        *,
        level: int = 0,
        newest: int | None = None,
    ) -> None:
        folder = self._label(within) if within else name
        with self._planning:
            write = self._writes.setdefault(folder, _Write(shared=within is not None))
            if name in write.tables:
                raise StateError(f"state table {name} was written twice in batch {self._batch_id}")
            if folder in self._begun:
                raise StateError(f"state table {name} is too late for folder {folder}")
            segment = Segment(
                batch_id=self._batch_id,
                at=path_of(folder, self._batch_id),
                column=name if within else None,
                level=level,
                newest=newest,
            )
            self._next[name] = table.model_copy(update={"segments": (*table.segments, segment)})
            write.tables[name] = rows
            write.folds |= level > 0

    def begin(self, name: str, background: BackgroundJobs, n_rows: int | None = None) -> None:
        """Begin to write what was planned for a table, beside all that is still to be decided.

        So for a folder that tables share, if any is to get rows, of which there are `n_rows`.
        """
        if (label := self._label(name)) in self._writes:
            self._begin(label, background, n_rows)

    def _begin(self, folder: str, background: BackgroundJobs, n_rows: int | None = None) -> None:
        with self._planning:
            if folder not in self._begun:
                self._begun[folder] = background.start(partial(self._save, folder, n_rows))

    def _save(self, folder: str, n_rows: int | None) -> None:
        write = self._writes[folder]
        tables = {name: make() for name, make in write.tables.items()}
        (rows,) = [sharing(tables)] if write.shared else tables.values()
        if write.shared:
            rows = coalesced(rows, ONE_TASK + 1 if n_rows is None or write.folds else n_rows)
        write_parquet(rows, self._files, path_of(folder, self._batch_id))

    def begin_own(self, background: BackgroundJobs) -> None:
        """Begin what was planned for folders of one table: those shared may still get others."""
        for folder, write in list(self._writes.items()):
            if not write.shared:
                self._begin(folder, background)

    def write(self, background: BackgroundJobs) -> None:
        """Carry out all that was planned, side by side."""
        for folder in list(self._writes):
            self._begin(folder, background)
        for result in list(self._begun.values()):
            result()

    @property
    def next(self) -> dict[str, Table]:
        """The tables as they will be once this batch is committed."""
        return self._next


def _last(newest: Collection[int | None]) -> int | None:
    """When all are expired; None if that is not known of one."""
    known = [one for one in newest if one is not None]
    return max(known) if len(known) == len(newest) else None


def _names(columns: dict[str, object]) -> str:
    return ", ".join(field.name for field in StructType.fromJson(columns))
