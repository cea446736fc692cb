"""What a revise keeps: the rows that late ones may still need.

Four state tables, each appended to and expired by event time:

    recent     the rows of the last span that came on time, of all keys (the seed's β)
    joined     late rows that are as recent
    contexts   older rows within a span of a hole that is still open (the seed's B)
    holes      the holes whose first neighbour has left `recent`, as they were then

A row that leaves `recent` goes to `contexts` or is forgotten. Among recent rows holes are found
from the rows themselves; behind them neighbours may be forgotten, hence the table. Where rows are
not counted, every row older than recent is a context until the bound on lateness has passed. Of
rows no more is kept than the columns that the app uses (`used.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from laxity.core.moment import CONTEXTS, JOINED, N_BUCKETS, RECENT, Moment
from laxity.spark.aside import Asides
from laxity.spark.changing import EVENT_US, changing
from laxity.spark.doubt import FRESH, Doubt, late_keys, suspects
from laxity.spark.holes import OPEN, in_context, is_present, left_behind, n_between, open_holes
from laxity.spark.intake import measured, riding
from laxity.spark.keep import kept
from laxity.spark.known import OLD, Known
from laxity.spark.lates import Lates, as_came
from laxity.spark.places import FEW, KEY, US, Places, of_keys
from laxity.spark.state import Tables
from laxity.spark.used import Used

HOLES = "holes"

Added = Callable[[], dict[int, int]]  # rows added to a table, by bucket; asked after the write


@dataclass(frozen=True)
class Suspects:
    """The keys in doubt, one row each; how many is known once a job has found them."""

    keys: DataFrame
    counted: Callable[[], Mapping[str, int]]

    @cached_property
    def n_keys(self) -> int:
        """How many there are."""
        return self.counted()["n_keys"]

    @property
    def n_fresh(self) -> int:
        """How many of them have no recent row."""
        return self.counted()["n_fresh"]


@dataclass(frozen=True)
class Holes:
    """The keys with open holes near, one row each, about `n_keys`, and how many holes they have.

    What was `counted` is known once a job has read them: the holes `between` rows, and those `left`
    behind, which are new in the table of holes.
    """

    keys: DataFrame
    n_keys: int
    counted: Callable[[], Mapping[str, int | None]]

    @cached_property
    def n(self) -> dict[str, int]:
        """How many there are."""
        return {name: number or 0 for name, number in self.counted().items()}


@dataclass(frozen=True)
class History:
    """The tables as one batch finds them, and what it leaves in them."""

    tables: Tables
    aside: Asides
    places: Places
    used: Used
    moment: Moment

    def recent(self) -> DataFrame | None:
        """The rows of the last span, as of the last batch, at hand, with their places."""
        parts = [rows for name in (RECENT, JOINED) if (rows := self.tables.read(name)) is not None]
        if not parts:
            return None
        cores = parts[0].sparkSession.sparkContext.defaultParallelism
        return self._placed(self.at_hand(_union(parts).coalesce(cores)))

    def contexts(self) -> DataFrame | None:
        """The older rows that are kept, with their places."""
        rows = self.tables.read(CONTEXTS)
        return None if rows is None else self._placed(rows)

    def _placed(self, rows: DataFrame) -> DataFrame:
        return self.places.of(self.used.widen(rows))

    def suspects(self, known: Known, n_before: int | None) -> Suspects:
        """The keys in doubt; in the last batch so many were."""
        rows = known.accepted(self.moment)
        if self.places.step is None:
            found = late_keys(rows.where(f"NOT {OLD}"), self.places)
        else:
            found = suspects(rows, self.tables.read(HOLES), self.places, self.moment)
        if n_before is not None and n_before <= FEW:
            found = found.coalesce(1)  # so Spark sees that two uses of them are the same
        keys = self.at_hand(found)
        counts = [F.count(F.lit(1)).alias("n_keys"), F.count_if(FRESH).alias("n_fresh")]
        return Suspects(keys, self.aside.begin(lambda: measured(keys, counts)))

    def in_doubt(self, known: Known, keys: DataFrame, n_keys: int, older: bool) -> DataFrame:
        """All rows known of the keys in doubt, about `n_keys`, with what is told of the key.

        A key's are in one place. `older` rows are needed for late ones, and for keys without recent
        ones.
        """
        rows = known.accepted(self.moment, self.contexts() if older else None)
        return self.places.together(of_keys(rows, keys, n_keys))

    def open_holes(self, doubt: Doubt) -> Holes | None:
        """Where rows are missing, among those in doubt; None where nobody sees it."""
        if self.places.step is None:
            return None
        keys = self.at_hand(open_holes(doubt.rows, self.places, self.moment))
        counts = _counts(self.places, self.moment)
        return Holes(keys, doubt.n_keys, self.aside.begin(lambda: measured(keys, counts)))

    def keep_recent(self, on_time: DataFrame) -> Added:
        """Begin to keep what is recent of the rows that came on time."""
        moment = self.moment
        new = on_time.where(F.col(US) > changing(moment.edge_us))
        self._append(RECENT, new, moment.newest_us)
        self.tables.begin(RECENT, self.aside)
        self.tables.expire(RECENT, moment.edge_us + 1)
        buckets = new.groupBy(self._bucket(RECENT).alias("nr")).agg(F.count(F.lit(1)).alias("n"))
        counted = self.aside.begin(buckets.collect)
        return lambda: {int(row["nr"]): int(row["n"]) for row in counted()}

    def keep_joined(self, lates: Lates | None) -> Added:
        """Begin to keep what is recent of the late rows that are due."""
        added: Added = dict
        if lates is not None and lates.n.due > lates.n.behind:
            recent = lates.recent().where(F.col(US) > changing(self.moment.edge_us))
            added = self._append_counted(JOINED, recent, self.moment.newest_us)
        self.tables.expire(JOINED, self.moment.edge_us + 1)
        return added

    def keep_contexts(
        self, present: DataFrame, lates: Lates | None, doubt: Doubt | None, holes: Holes | None
    ) -> Added:
        """Plan to keep, of the rows that are not recent any more, what a late row may need."""
        moment = self.moment
        going = [lates.behind()] if lates is not None and lates.n.behind else []
        if moment.edge_us > moment.answered_us:
            going += self._leaving(present, doubt, holes)
        added: Added = dict
        if going:
            added = self._append_counted(CONTEXTS, _union(going), moment.edge_us)
        self.tables.expire(CONTEXTS, moment.final_us + 1)
        return added

    def _leaving(
        self, present: DataFrame, doubt: Doubt | None, holes: Holes | None
    ) -> list[DataFrame]:
        """Of the rows that are not recent any more those that a late row may need."""
        gone = F.col(US) <= changing(self.moment.edge_us)
        if self.places.step is None:
            return [present.where(gone)]
        if doubt is None or holes is None:
            return []
        mine = as_came(doubt.rows.where(is_present(self.moment)).where(gone))
        mine = of_keys(mine, holes.keys, holes.n_keys)
        return [mine.where(in_context(self.moment)).drop(OPEN)]

    def _append_counted(self, table: str, rows: DataFrame, newest_us: int) -> Added:
        """Begin to keep rows; the job that writes them counts them."""
        nr = self._bucket(table)
        counts = [F.count_if(nr == n).alias(f"n_{n}") for n in range(N_BUCKETS + 1)]
        counted, seen = riding(rows, counts)
        self._append(table, counted, newest_us)
        self.tables.begin(table, self.aside)
        return partial(_by_bucket, seen)

    def _append(self, table: str, rows: DataFrame, newest_us: int) -> None:
        self.tables.append(table, self.used.narrow(rows), expire_by=EVENT_US, newest=newest_us)

    def _bucket(self, table: str) -> Column:
        """The number of the bucket in which a row of the table expires."""
        floor_us, width_us = self.moment.shelf(table)
        return F.floor((F.col(US) - changing(floor_us)) / width_us)

    def note(self, holes: Holes | None, others: DataFrame | None) -> None:
        """Note the holes that can no longer be found from recent rows, and some others."""
        noted = [] if others is None else [others]
        if holes is not None and holes.n["left"]:
            left = F.inline(left_behind(self.places, self.moment))
            noted.append(holes.keys.select(KEY, left).drop("listed"))
        if noted:
            rows, newest_us = _union(noted), self.moment.newest_us
            self.tables.append(HOLES, rows, expire_by="last_us", newest=newest_us)
            self.tables.begin(HOLES, self.aside)
        self.tables.expire(HOLES, self.moment.open_us)

    def at_hand(self, rows: DataFrame, made: bool = False) -> DataFrame:
        """Rows that several jobs read, worked out once; `made` by a stage before."""
        at_hand, let_go = kept(rows, made)
        self.aside.last(let_go)
        return at_hand


def _counts(places: Places, moment: Moment) -> list[Column]:
    return [
        F.sum(n_between()).alias("between"),
        F.sum(F.size(left_behind(places, moment))).alias("left"),
    ]


def _by_bucket(seen: Observation) -> dict[int, int]:
    return {n: int(seen.get[f"n_{n}"]) for n in range(N_BUCKETS + 1)}


def _union(parts: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, parts)
