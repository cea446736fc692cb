"""What a revise knows of one key when a batch comes: rows kept, holes noted, rows that came."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from laxity.core.holes import BEGINNING, END, Holes, by_number, by_time, no_holes, split
from laxity.core.holes import Rows as Points
from support.worlds import World, frame

N_SLOTS = 12


class Row(NamedTuple):
    """A row's place and time, and what became of it."""

    at: int | None
    us: int
    mark: str = "old"  # old, on time, due, waiting, dead, or waited since a batch before


class Hole(NamedTuple):
    """A hole, as a revise tells it."""

    lo: int
    hi: int
    first_us: int
    last_us: int


def points(world: World, rows: Sequence[Row]) -> Points:
    """The rows of one key as `laxity.core.holes` sees them."""
    us = np.array([row.us for row in rows], np.int64)
    key = np.zeros(len(rows), np.int64)
    if not world.numbered:
        return by_time(key, us)
    return by_number(key, us, np.array([row.at for row in rows], np.int64))


def counted(rows: Iterable[Row]) -> list[Row]:
    """Those that have a place."""
    return [row for row in rows if row.at is not None]


def holes_of(world: World, rows: Iterable[Row]) -> Holes:
    """The holes of a key once all these rows have come."""
    return split(no_holes(), points(world, counted(rows)), world.places.step or 1)


def as_told(holes: Holes) -> list[Hole]:
    """The holes one by one."""
    columns = (column.tolist() for column in holes.columns[1:])
    return [Hole(*one) for one in zip(*columns, strict=True)]


def held(holes: Holes, world: World, rows: Sequence[Row], oldest_us: int) -> list[Row]:
    """Those of the rows that are within a span of one of the holes."""
    near = holes.contexts(world.span_us, oldest_us)
    key = np.zeros(len(rows), np.int64)
    kept = near.hold(key, np.array([row.us for row in rows], np.int64))
    return [row for row, keep in zip(rows, kept, strict=True) if keep]


@dataclass(frozen=True)
class Key:
    """One key: its rows of the batches before, of which some joined late, and those that came."""

    world: World = field(repr=False)
    before: list[Row]
    joined: list[Row]
    came: list[Row]

    @property
    def history(self) -> list[Row]:
        """All its rows of the batches before."""
        return self.before + self.joined

    @property
    def kept(self) -> list[Row]:
        """Those that are still there: recent ones, and those near holes that were open."""
        moment = self.world.moment
        old = [row for row in self.history if row.us <= moment.answered_us]
        near: set[Row] = {
            row for row in self.joined if row.us > moment.accepted_us - moment.span_us
        }
        for rows in (self.before, self.history):
            holes = holes_of(self.world, rows).open(moment.span_us, moment.accepted_us)
            near |= set(held(holes, self.world, old, moment.accepted_us))
        return [row for row in self.history if row.us > moment.answered_us or row in near]

    @property
    def noted(self) -> list[Hole]:
        """Its holes that were left behind before the late rows joined."""
        moment, margin_us = self.world.moment, self.world.places.margin_us
        behind = [
            hole
            for hole in as_told(holes_of(self.world, self.before))
            if hole.first_us - margin_us <= moment.answered_us and hole.hi != END
        ]
        return [hole for hole in behind if hole.last_us >= moment.accepted_us]

    @property
    def seen(self) -> list[Row]:
        """The rows that a batch looks at."""
        return self.kept + self.came

    @property
    def is_fresh(self) -> bool:
        """Whether none of its kept rows that are counted is recent."""
        return all(row.us <= self.world.moment.answered_us for row in counted(self.kept))


def places_around(world: World) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Places and times in a row, from before what is kept up to the newest event."""
    before_us = world.newest_us if world.before_us == BEGINNING else world.before_us
    reach_us = world.lateness_us + 2 * world.span_us
    start = st.integers(before_us - reach_us, world.newest_us)
    if world.numbered:
        further = st.lists(st.sampled_from([0, 1, 1, 2, 4]), min_size=N_SLOTS, max_size=N_SLOTS)
        return st.builds(
            lambda us, by, first: [(first + n, us + sum(by[:n])) for n in range(N_SLOTS)],
            start,
            further,
            st.integers(-5, 5),
        )
    step = world.places.step or 1
    off = st.lists(st.sampled_from([0] * 6 + [step - 1]), min_size=N_SLOTS, max_size=N_SLOTS)
    times = st.builds(lambda us, o: [us + n * step + o[n] for n in range(N_SLOTS)], start, off)
    return times.map(lambda all_us: [(us, us) for us in dict.fromkeys(all_us)])


@st.composite
def keys(draw: st.DrawFn, world: World, joined: bool = False, unnumbered: bool = False) -> Key:
    """A key whose rows are complete but for some; late ones fill holes or are there already.

    `joined`: some came late, once holes were noted. `unnumbered`: some have no number.
    """
    before, came = [], []
    for at, us in draw(places_around(world)):
        marks = draw(st.sampled_from(_marks(world, us)))
        is_void = unnumbered and world.numbered and draw(st.integers(0, 5)) == 0
        void = ("old", "on time", "dead") if is_void else ()
        rows = [Row(None if mark in void else at, us, mark) for mark in marks]
        before += [row for row in rows if row.mark == "old"]
        came += [row for row in rows if row.mark != "old"]
    may_join = [joined and row.at is not None for row in before[:-1]] + [False] * bool(before)
    late = [may and draw(st.booleans()) for may in may_join]
    pairs = list(zip(before, late, strict=True))
    on_time = [row for row, is_late in pairs if not is_late]
    key = Key(world, on_time, [row for row, is_late in pairs if is_late], came)
    assume(key.seen)
    return key


def _marks(world: World, us: int) -> list[tuple[str, ...]]:
    """What may become of a row at that time, and of others with its place; most are there."""
    moment = world.moment
    may: list[tuple[str, ...]] = [()]
    if us <= moment.before_us:
        may += [("old",)] * 6
    if moment.before_us <= us <= moment.newest_us:
        may += [("on time",)] * 4
    if moment.accepted_us <= us < moment.before_us:
        late = [("due",), ("waiting",), ("dead",), ("waited",), ("due", "due")]
        may += [*late, ("old", "dead"), ("old", "due")]
    return may


COLUMNS = """n bigint, us bigint, id int, _old boolean, _new boolean, _waited boolean, _due boolean,
    _reason string, _fresh boolean, _lately boolean, _n_on_time bigint,
    _noted array<struct<lo: bigint, hi: bigint, first_us: bigint, last_us: bigint>>,
    _late array<bigint>"""


def seen_rows(spark: SparkSession, world: World, cases: Sequence[Key]) -> DataFrame:
    """All that is seen of the keys, with what is told of a key in doubt; `id` is a row's place."""
    rows = [(nr, told) for nr, key in enumerate(cases) for told in _told(key)]
    return world.places.of(frame(spark, rows, COLUMNS))


def _told(key: Key) -> Iterable[tuple[object, ...]]:
    due_us = sorted({row.us for row in key.came if row.mark == "due"})
    late = [row for row in key.came if row.mark != "on time"]
    on_time = len(key.came) - len(late)
    of_key = key.is_fresh, bool(late), on_time, key.noted, due_us
    for nr, (at, us, mark) in enumerate(key.seen):
        is_late = mark not in ("old", "on time")
        reason = "unexpected" if mark == "dead" else None
        is_due = mark == "due"
        yield at, us, nr, mark == "old", is_late, mark == "waited", is_due, reason, *of_key
