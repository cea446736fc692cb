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

Where executors live in the driver, the next batch finds recent rows at hand, a key's in one place,
and reads the tables only after a restart.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from laxity.core.moment import N_BUCKETS, Moment
from laxity.spark.aside import Asides
from laxity.spark.changing import EVENT_US, changing
from laxity.spark.doubt import FRESH, Doubt, late_keys, summed, suspects
from laxity.spark.holes import OPEN, in_context, is_present, left_behind, n_between, open_holes
from laxity.spark.intake import measured, riding
from laxity.spark.keep import in_one_process, kept, of_unknown_origin
from laxity.spark.known import OLD, Known, kept_before
from laxity.spark.lates import Lates, as_came
from laxity.spark.places import FEW, KEY, US, Places, of_keys
from laxity.spark.state import Tables
from laxity.spark.used import Used

RECENT, JOINED, CONTEXTS, HOLES = "recent", "joined", "contexts", "holes"

Added = Callable[[], dict[int, int]]  # contexts added, by bucket; asked after the write


@dataclass(frozen=True)
class Suspects:
    """The keys in doubt, one row each; how many, a job finds out for who asks."""

    keys: DataFrame

    @cached_property
    def n(self) -> dict[str, int]:
        """How many there are, and how many of them have no recent row."""
        return measured(
            self.keys, [F.count(F.lit(1)).alias("keys"), F.count_if(FRESH).alias("fresh")]
        )


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
        standing = self.tables.standing(RECENT)
        if standing is None:
            read = [self.tables.read(name) for name in (RECENT, JOINED)]
            parts = [rows for rows in read if rows is not None]
            standing = self.at_hand(self.places.together(_union(parts))) if parts else None
        return None if standing is None else self._placed(standing)

    def contexts(self) -> DataFrame | None:
        """The older rows that are kept, with their places."""
        rows = self.tables.read(CONTEXTS)
        return None if rows is None else self._placed(rows)

    def _placed(self, rows: DataFrame) -> DataFrame:
        return self.places.of(self.used.widen(rows))

    def summed(self, known: Known) -> DataFrame | None:
        """By key what its rows say together, being worked out; None where that tells nothing."""
        if self.places.step is None:
            return None
        holes = self.tables.read(HOLES)
        keys = self.at_hand(summed(known.accepted(self.moment), holes, self.places, self.moment))
        self.aside.begin(keys.count)
        return keys

    def suspects(self, known: Known, keys: DataFrame | None, n_before: int | None) -> Suspects:
        """The keys in doubt, of those `summed`; in the last batch so many were."""
        if keys is None:
            accepted = known.accepted(self.moment)
            found = late_keys(accepted.where(f"NOT {OLD}"), self.places)
        else:
            found = suspects(keys, self.tables.read(HOLES), self.places, self.moment)
        if n_before is not None and n_before <= FEW:
            found = found.coalesce(1)  # so Spark sees that two uses of them are the same
        return Suspects(self.at_hand(found))

    def in_doubt(self, known: Known, keys: DataFrame, n_keys: int, older: bool) -> DataFrame:
        """All rows known of the keys in doubt, about `n_keys`, with what is told of the key.

        A key's are in one place. `older` rows are needed for late ones, and for keys without recent
        ones.
        """
        rows = of_keys(known.accepted(self.moment), keys, n_keys)
        contexts = self.contexts() if older else None
        if contexts is not None:
            mine = of_keys(kept_before(contexts), keys, n_keys)
            rows = rows.unionByName(self.places.together(mine))
        return self.at_hand(rows)

    def open_holes(self, doubt: Doubt) -> Holes | None:
        """Where rows are missing, among those in doubt; None where nobody sees it."""
        if self.places.step is None:
            return None
        keys = self.at_hand(open_holes(doubt.rows, self.places, self.moment))
        counts = _counts(self.places, self.moment)
        return Holes(keys, doubt.n_keys, self.aside.begin(lambda: measured(keys, counts)))

    def keep_recent(self, on_time: DataFrame) -> None:
        """Begin to keep what is recent of the rows that came on time."""
        self._append(RECENT, self._still_recent(on_time), self.moment.newest_us)
        self.tables.expire(RECENT, self.moment.edge_us + 1)

    def keep_joined(self, lates: Lates | None) -> None:
        """Begin to keep what is recent of the late rows that are due."""
        if lates is not None and lates.n.due > lates.n.behind:
            self._append(JOINED, self._still_recent(lates.recent()), self.moment.newest_us)
        self.tables.expire(JOINED, self.moment.edge_us + 1)

    def leave_recent(self, present: DataFrame) -> Callable[[], int]:
        """Leave all that is recent at hand for the next batch; gives how many rows that are."""
        recent = self.used.narrow(self._still_recent(present))
        if in_one_process(recent.sparkSession):  # elsewhere a plan would grow from batch to batch
            recent, let_go = kept(recent)
            self.tables.leave(RECENT, of_unknown_origin(recent), let_go)
        return self.aside.begin(recent.count)

    def _still_recent(self, rows: DataFrame) -> DataFrame:
        return rows.where(F.col(US) > changing(self.moment.edge_us))

    def keep_contexts(
        self, present: DataFrame, lates: Lates | None, doubt: Doubt | None, holes: Holes | None
    ) -> Added:
        """Begin to keep, of the rows that are not recent any more, what a late row may need."""
        moment = self.moment
        going = [lates.behind()] if lates is not None and lates.n.behind else []
        if moment.edge_us > moment.answered_us:
            going += self._leaving(present, doubt, holes)
        added: Added = dict
        if going:
            counted, seen = riding(_union(going), self._by_bucket())
            self._append(CONTEXTS, counted, moment.edge_us)
            added = partial(_counted, seen)
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

    def _append(self, table: str, rows: DataFrame, newest_us: int) -> None:
        self.tables.append(table, self.used.narrow(rows), expire_by=EVENT_US, newest=newest_us)
        self.tables.begin(table, self.aside)

    def _by_bucket(self) -> list[Column]:
        """How many rows expire in each bucket of the contexts."""
        nr = F.floor((F.col(US) - changing(self.moment.final_us)) / self.moment.bucket_us)
        return [F.count_if(nr == n).alias(f"n_{n}") for n in range(N_BUCKETS + 1)]

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


def _counted(seen: Observation) -> dict[int, int]:
    return {n: int(seen.get[f"n_{n}"]) for n in range(N_BUCKETS + 1)}


def _union(parts: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, parts)
