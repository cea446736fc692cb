"""What a revise keeps: the rows that late ones may still need.

State tables, each appended to and expired by event time:

    recent     the rows of the last span, of all keys (the seed's β)
    joined     those of them that came late
    contexts   older rows within a span of a hole that is still open (the seed's B)
    holes      the holes whose first neighbour has left `recent`, as they were then

A row that leaves `recent` goes to `contexts` or is forgotten. Among recent rows holes are found
from the rows themselves; behind them neighbours may be forgotten, hence the table. Where rows are
not counted, every row older than recent is a context until the bound on lateness has passed. Of
rows no more is kept than the columns that the app uses (`column_pruning.py`).

Where executors live in the driver, the next batch finds the tables at hand, a key's rows in one
place, and reads them only after a restart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.moment import CONTEXTS, JOINED, N_BUCKETS, RECENT, Moment
from laxity.spark.engine.stage import StateTables
from laxity.spark.revising.column_pruning import PrunedColumns
from laxity.spark.revising.holes import N_BETWEEN, Keys, found_out, left_behind
from laxity.spark.revising.late_rows import LateRows
from laxity.spark.revising.marks import FRESH, LEAVING, OLD, US
from laxity.spark.revising.places import Places, of_keys
from laxity.spark.revising.suspects import SuspectKeys, late_keys, summed, suspects
from laxity.spark.revising.visible import SuspectRows, VisibleRows, fates, kept_before
from laxity.spark.rows.background import BackgroundJobs
from laxity.spark.rows.columns import EVENT_US, quoted_name
from laxity.spark.rows.materialize import Loan, materialized
from laxity.spark.rows.measure import Riding, measure, observe
from laxity.spark.rows.one_process import in_one_process
from laxity.spark.rows.runtime_literal import runtime_literal, runtime_sql
from laxity.spark.storage.resident import Chunk, rows_of_chunks

HOLES, WAITING = "holes", "waiting"
SUSPECTS = "suspects"  # the folder of all tables but `recent`: each gets few rows in a batch

Added = Callable[[], dict[int, int]]  # rows added to a table, by bucket; asked after the write


@dataclass(frozen=True)
class Retained:
    """The tables as one batch finds them, and what it leaves in them."""

    tables: StateTables
    background: BackgroundJobs
    places: Places
    pruned: PrunedColumns
    moment: Moment

    def recent(self) -> DataFrame | None:
        """The rows of the last span, as of the last batch, at hand, with their places."""
        rows = self._table(RECENT, beside=JOINED)
        if rows is not None and not self._stays(rows):
            rows = self.at_hand(rows)
        return None if rows is None else self._placed(rows)

    def contexts(self) -> DataFrame | None:
        """The older rows that are kept, with their places."""
        rows = self._kept_table(CONTEXTS)
        return None if rows is None else self._placed(rows)

    def waited(self) -> DataFrame | None:
        """The late rows that wait since the last batch, with their places."""
        rows = self._table(WAITING)
        return None if rows is None else self.places.of(rows)

    def _table(self, name: str, beside: str | None = None) -> DataFrame | None:
        """The rows of a table, each key's in one place."""
        rows = self._kept_table(name, beside)
        return rows if rows is None or self._stays(rows) else self.places.together(rows)

    def _kept_table(self, name: str, beside: str | None = None) -> DataFrame | None:
        return self.tables.at_hand(name, self.places.together, self.background, beside)

    @staticmethod
    def _stays(rows: DataFrame) -> bool:
        """Whether tables stay at hand from batch to batch."""
        return in_one_process(rows.sparkSession)

    def _placed(self, rows: DataFrame) -> DataFrame:
        return self.places.of(self.pruned.widen(rows))

    def summed(self, known: VisibleRows) -> DataFrame | None:
        """By key what its rows say together, being worked out; None where that tells nothing."""
        if self.places.step is None:
            return None
        holes = self._table(HOLES)
        return self.worked_out(summed(known.accepted, holes, self.places, self.moment))

    def suspects(self, known: VisibleRows, keys: DataFrame | None) -> DataFrame:
        """The keys in doubt, of those `summed`, one row each."""
        if keys is None:
            return late_keys(known.accepted.where(f"NOT {OLD}"), self.places)
        return suspects(keys, self._table(HOLES), self.places, self.moment)

    def counted(self, suspects: DataFrame) -> SuspectKeys:
        """The same at hand, and how many they are."""
        keys = self.at_hand(suspects)
        counts = F.expr("count(1) AS keys"), F.expr(f"count_if({FRESH}) AS fresh")
        return SuspectKeys(keys, **measure(keys, counts))

    def all_rows_of(
        self, known: VisibleRows, keys: DataFrame, n_keys: int, older: bool
    ) -> DataFrame:
        """All rows known of the keys in doubt, about `n_keys`, with what is told of the key.

        A key's are in one place. `older` rows are needed for late ones, and for keys without recent
        ones.
        """
        rows = known.accepted
        contexts = self.contexts() if older else None
        if contexts is not None:
            rows = rows.unionByName(kept_before(contexts))
        rows = of_keys(rows, keys, n_keys)
        if contexts is not None and not self._stays(rows):
            rows = self.places.together(rows)
        return self.at_hand(rows)

    def found_out(self, suspect_rows: SuspectRows) -> Keys:
        """What is to be said of each key in doubt; it is being counted."""
        columns = [quoted_name(name) for name in self.pruned.names if name not in self.places.by]
        keys = self.at_hand(found_out(suspect_rows.rows, self.places, self.moment, columns))
        counts = _counts(self.places, self.moment)
        return Keys(keys, suspect_rows.n_keys, self.background.start(lambda: measure(keys, counts)))

    def keep_recent(self, on_time: DataFrame, loan: Loan | None) -> Added:
        """Begin to keep what is recent of the rows that came on time, on loan if they may be."""
        recent = self.pruned.narrow(on_time.where(self._is_recent()))
        added = self._append(RECENT, [recent], loan if self.pruned.much else None)
        self.tables.begin(RECENT, self.background)
        self.tables.expire(RECENT, self.moment.watermark_us + 1)
        return added

    def keep_joined(self, late_rows: LateRows | None) -> Added:
        """Keep what is recent of the late rows that are due."""
        added: Added = dict
        if late_rows is not None and late_rows.n.due > late_rows.n.behind:
            rows = self.pruned.narrow(late_rows.recent.where(self._is_recent()))
            added = self._append(JOINED, [rows])
        self.tables.expire(JOINED, self.moment.watermark_us + 1)
        return added

    def _is_recent(self) -> Column:
        return F.col(US) > runtime_literal(self.moment.watermark_us)

    def keep_waiting(self, late_rows: LateRows) -> None:
        """Keep the late rows that go on waiting, and no others."""
        rows = self._staying(WAITING, [self.places.without(late_rows.waiting())], None, anew=True)
        self.tables.replace(WAITING, rows, within=SUSPECTS)

    def keep_contexts(
        self, present: DataFrame, late_rows: LateRows | None, keys: Keys | None
    ) -> Added:
        """Keep, of the rows that are not recent any more, what a late row may need."""
        moment = self.moment
        going = [late_rows.behind()] if late_rows is not None and late_rows.n.behind else []
        if moment.watermark_us > moment.answered_us:
            going += self._leaving(present, keys)
        added: Added = dict
        if going:
            added = self._append(CONTEXTS, [_union([self.pruned.narrow(rows) for rows in going])])
        self.tables.expire(CONTEXTS, moment.final_us + 1)
        return added

    def _leaving(self, present: DataFrame, keys: Keys | None) -> list[DataFrame]:
        """Of the rows that are not recent any more those that a late row may need."""
        if self.places.step is None:
            return [present.where(F.col(US) <= runtime_literal(self.moment.watermark_us))]
        if keys is None or not keys.n["leaving"]:
            return []
        return [keys.rows.selectExpr(*self.places.names, f"inline({LEAVING})")]

    def _append(self, table: str, parts: list[DataFrame], loan: Loan | None = None) -> Added:
        """Add rows, as they are kept, to a table; the job that writes counts them.

        A key's are in one place. The first part is on loan, if any is.
        """
        newest_us = self.moment.watermark_us if table == CONTEXTS else self.moment.newest_us
        rows = self._staying(RECENT if table == JOINED else table, parts, newest_us, loan)
        rows, seen = observe(rows, [self._by_bucket(table)])
        within = None if table == RECENT else SUSPECTS
        self.tables.append(table, rows, expire_by=EVENT_US, newest=newest_us, within=within)
        return partial(_counted, seen)

    def _staying(
        self,
        table: str,
        parts: list[DataFrame],
        newest_us: int | None,
        loan: Loan | None = None,
        anew: bool = False,
    ) -> DataFrame:
        """What a table gets, at hand in later batches too if that can be."""
        if not self._stays(parts[0]):
            return _union(parts)
        lent = [] if loan is None else [Chunk.view(parts.pop(0), newest_us, loan)]
        pieces = lent + [Chunk.of(rows, newest_us) for rows in parts]
        self.tables.stay(table, pieces, self.background, anew)
        return rows_of_chunks(pieces)

    def _by_bucket(self, table: str) -> Column:
        """How many rows expire in each bucket of a table."""
        floor_us, width_us = self.moment.shelf(table)
        nr = f"({EVENT_US} - {runtime_sql(floor_us)}) div {width_us}L"
        counts = ", ".join(f"count_if({nr} = {n})" for n in range(N_BUCKETS + 1))
        return F.expr(f"array({counts}) AS by_bucket")

    def note(self, keys: Keys | None, others: DataFrame | None) -> None:
        """Note the holes that can no longer be found from recent rows, and some others."""
        noted = [] if others is None else [others]
        if keys is not None and keys.n["left"]:
            left = f"inline({left_behind(self.places, self.moment)})"
            columns = "lo AS _lo", "hi AS _hi", "first_us AS _first_us", "last_us AS _last_us"
            holes = keys.rows.selectExpr(*self.places.names, left)
            noted.append(holes.selectExpr(*self.places.names, *columns))
        if noted:
            newest_us = self.moment.newest_us
            rows = self._staying(HOLES, [_union(noted)], newest_us)
            self.tables.append(HOLES, rows, expire_by="_last_us", newest=newest_us, within=SUSPECTS)
        self.tables.expire(HOLES, self.moment.open_us)

    def begin_suspects(self, late_rows: LateRows | None, keys: Keys | None) -> None:
        """Begin to write what is kept of the keys in doubt, with one job."""
        n_rows = None
        if self.places.step is not None and keys is not None:
            n_late = (
                0
                if late_rows is None
                else late_rows.n.waiting + late_rows.n.due + late_rows.n.behind
            )
            n_rows = keys.n["leaving"] + keys.n["left"] + n_late
        self.tables.begin(SUSPECTS, self.background, n_rows)

    def at_hand(self, rows: DataFrame, made: bool = False) -> DataFrame:
        """Rows that several jobs read, worked out once; `made` by a stage before."""
        at_hand = materialized(rows, made)
        self.background.at_end(at_hand.release)
        return at_hand.rows

    def worked_out(self, rows: DataFrame) -> DataFrame:
        """The same, and a job begins that works them out."""
        at_hand = materialized(rows)
        self.background.at_end(at_hand.release)
        self.background.start(at_hand.compute)
        return at_hand.rows


def _counts(places: Places, moment: Moment) -> list[Column]:
    counts = {"keys": "count(1)"} | {name: f"sum({name})" for name in fates(moment)}
    holes = dict.fromkeys(("between", "left", "leaving"), "0")
    if places.step is not None:
        what = left_behind(places, moment)
        holes = {"between": N_BETWEEN, "left": f"size({what})", "leaving": f"size({LEAVING})"}
    counts |= {name: f"sum({n})" for name, n in holes.items()}
    return [F.expr(f"{count} AS {name}") for name, count in counts.items()]


def _counted(riding: Riding) -> dict[int, int]:
    return dict(enumerate(riding.arrive()["by_bucket"]))


def _union(parts: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, parts)
