"""What a revise keeps: the rows that late ones may still need.

Three state tables, each appended to and expired by event time:

    recent     the rows of the last span, of all keys (the seed's β)
    contexts   older rows within a span of a hole that is still open (the seed's B)
    holes      the holes whose first neighbour has left `recent`, as they were then

A row that leaves `recent` goes to `contexts` or is forgotten. Among recent rows holes are found
from the rows themselves; behind them neighbours may be forgotten, hence the table. Where rows are
not counted, every row older than recent is a context until the bound on lateness has passed. Of
rows no more is kept than the columns that the app uses (`used.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from laxity.core.moment import CONTEXTS, N_BUCKETS, RECENT, Moment
from laxity.spark.aside import Asides
from laxity.spark.changing import EVENT_US, changing
from laxity.spark.holes import (
    FRESH,
    OLD,
    OPEN,
    in_context,
    left_behind,
    n_between,
    open_holes,
    suspects,
)
from laxity.spark.intake import measured, riding
from laxity.spark.keep import kept
from laxity.spark.places import AT, KEY, US, Places, of_keys
from laxity.spark.state import Tables
from laxity.spark.used import Used

HOLES = "holes"

Added = Callable[[], dict[int, int]]  # rows added to a table, by bucket; asked after the write


@dataclass(frozen=True)
class Suspects:
    """The keys that may have open holes near, one row each; `near` are holes left behind.

    `n_fresh` of the keys have no recent row.
    """

    keys: DataFrame
    near: DataFrame | None
    n_keys: int
    n_fresh: int


@dataclass(frozen=True)
class Holes:
    """The keys with open holes near, one row each, and how many keys and holes that are.

    `n_holes` are those between rows, `n_left` those that are new in the table of holes.
    """

    keys: DataFrame
    n_keys: int
    n_holes: int
    n_left: int


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
        rows = self.tables.read(RECENT)
        return None if rows is None else self._placed(self.at_hand(rows))

    def contexts(self) -> DataFrame | None:
        """The older rows that are kept, with their places."""
        rows = self.tables.read(CONTEXTS)
        return None if rows is None else self._placed(rows)

    def holes(self) -> DataFrame | None:
        """The holes left behind."""
        return self.tables.read(HOLES)

    def _placed(self, rows: DataFrame) -> DataFrame:
        return self.places.of(self.used.widen(rows))

    def suspects(self, rows: DataFrame) -> Callable[[], Suspects] | None:
        """Begin to find the keys that may have a hole near; None if nobody can see holes.

        `rows` are those since the last span before this batch, and the late ones, of which it is
        not known yet what becomes of them: they are in `_doubt`.
        """
        if self.places.step is None:
            return None
        near = self.holes()
        if near is not None:
            last_us, from_us = F.col("last_us"), self.moment.answered_us - self.moment.span_us
            near = near.where(last_us > changing(from_us, last_us))

        def found() -> Suspects:
            keys = self.at_hand(suspects(rows, near, self.places, self.moment))
            counted = [F.count(F.lit(1)).alias("n_keys"), F.count_if(FRESH).alias("n_fresh")]
            return Suspects(keys, near, **measured(keys, counted))

        return self.aside.begin(found)

    def open_holes(
        self, rows: DataFrame, behind: DataFrame | None, suspected: Suspects
    ) -> Holes | None:
        """Where rows are missing, given all rows since the last span before this batch.

        `behind` are late rows that go straight to the contexts. None where nothing is missing.
        """
        if not suspected.n_keys:
            return None
        lasts = self._lasts(suspected.keys.where(FRESH), behind) if suspected.n_fresh else None
        mine = of_keys(rows.select(KEY, AT, US), suspected.keys, suspected.n_keys)
        found = open_holes(mine, suspected.near, lasts, self.places, self.moment)
        found = self.at_hand(found)
        numbers = measured(found, _counts(self.places, self.moment))
        return Holes(found, **{name: number or 0 for name, number in numbers.items()})

    def _lasts(self, fresh: DataFrame, behind: DataFrame | None) -> DataFrame | None:
        """The last row kept of keys that have no recent one."""
        older = [rows for rows in (self.contexts(), behind) if rows is not None]
        if not older:
            return None
        rows = _union([one.select(KEY, AT, US) for one in older]).join(fresh, KEY, "left_semi")
        return rows.groupBy(KEY).agg(F.expr(f"max(struct({AT} AS at, {US} AS us))").alias("_last"))

    def keep_recent(self, rows: DataFrame) -> Added:
        """Begin to keep what is recent of all rows since the last span before this batch."""
        moment = self.moment
        new = rows.where(~F.col(OLD) & (F.col(US) > changing(moment.edge_us))).drop(OLD)
        self._append(RECENT, new, moment.newest_us)
        self.tables.begin(RECENT, self.aside)
        self.tables.expire(RECENT, moment.edge_us + 1)
        buckets = new.groupBy(self._bucket(RECENT).alias("nr")).agg(F.count(F.lit(1)).alias("n"))
        counted = self.aside.begin(buckets.collect)
        return lambda: {int(row["nr"]): int(row["n"]) for row in counted()}

    def keep_contexts(
        self, rows: DataFrame, behind: DataFrame | None, holes: Holes | None
    ) -> Added:
        """Plan to keep, of the rows that are not recent any more, what a late row may need."""
        moment = self.moment
        leaving = self._in_context(rows.where(F.col(US) <= changing(moment.edge_us)), holes)
        going = [one.drop(OLD) for one in (leaving, behind) if one is not None]
        added: Added = dict
        if going:
            nr = self._bucket(CONTEXTS)
            counts = [F.count_if(nr == n).alias(f"n_{n}") for n in range(N_BUCKETS + 1)]
            counted, seen = riding(_union(going), counts)
            self._append(CONTEXTS, counted, moment.edge_us)
            added = partial(_by_bucket, seen)
        self.tables.expire(CONTEXTS, moment.final_us + 1)
        return added

    def _in_context(self, leaving: DataFrame, holes: Holes | None) -> DataFrame | None:
        """Of the rows that are not recent any more those that a late row may need."""
        if self.moment.edge_us <= self.moment.answered_us:
            return None
        if self.places.step is None:
            return leaving
        if holes is None:
            return None
        mine = of_keys(leaving, holes.keys, holes.n_keys)
        return mine.where(in_context(self.moment)).drop(OPEN)

    def _append(self, table: str, rows: DataFrame, newest_us: int) -> None:
        self.tables.append(table, self.used.narrow(rows), expire_by=EVENT_US, newest=newest_us)

    def _bucket(self, table: str) -> Column:
        """The number of the bucket in which a row of the table expires."""
        floor_us, width_us = self.moment.shelf(table)
        return F.floor((F.col(US) - changing(floor_us)) / width_us)

    def note(self, holes: Holes | None, others: DataFrame | None) -> None:
        """Note the holes that can no longer be found from recent rows, and some others."""
        noted = [] if others is None else [others]
        if holes is not None and holes.n_left:
            left = F.inline(left_behind(self.places, self.moment))
            noted.append(holes.keys.select(KEY, left).drop("listed"))
        if noted:
            rows, newest_us = _union(noted), self.moment.newest_us
            self.tables.append(HOLES, rows, expire_by="last_us", newest=newest_us)
        self.tables.expire(HOLES, self.moment.open_us)

    def at_hand(self, rows: DataFrame, made: bool = False) -> DataFrame:
        """Rows that several jobs read, worked out once; `made` by a stage before."""
        at_hand, let_go = kept(rows, made)
        self.aside.last(let_go)
        return at_hand


def _counts(places: Places, moment: Moment) -> list[Column]:
    return [
        F.count(F.lit(1)).alias("n_keys"),
        F.sum(n_between()).alias("n_holes"),
        F.sum(F.size(left_behind(places, moment))).alias("n_left"),
    ]


def _by_bucket(seen: Observation) -> dict[int, int]:
    return {n: int(seen.get[f"n_{n}"]) for n in range(N_BUCKETS + 1)}


def _union(parts: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, parts)
