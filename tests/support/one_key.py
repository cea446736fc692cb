"""What a revise knows of one key when a batch comes: rows kept, holes noted, rows that came."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
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
    """The holes of a key once all these rows have come; one that nobody knows is one hole."""
    if not (known := counted(rows)):
        return Holes(*np.array([[0], [BEGINNING], [END], [BEGINNING], [END]]))
    return split(no_holes(), points(world, known), world.places.step or 1)


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
            holes = holes_of(self.world, rows)
            holes = holes.take(holes.last_us >= moment.accepted_us)
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


def keys(world: World, joined: bool = False, unnumbered: bool = False) -> st.SearchStrategy[Key]:
    """Keys whose rows are complete but for some; late ones fill holes or are there already.

    `joined`: some came late, once holes were noted. `unnumbered`: some have no number.
    """

    def drawn(seed: int) -> Key:
        rng = np.random.default_rng(seed)
        rows = _rows(world, rng, share_void=unnumbered * world.numbered / 6)
        old = [row for row in rows if row.mark == "old"]
        last = max((row.us for row in old if row.at is not None), default=BEGINNING)
        may_join = [joined and row.at is not None and row.us < last for row in old]
        late = [may and rng.random() < 1 / 2 for may in may_join]
        before = [row for row, is_late in zip(old, late, strict=True) if not is_late]
        after = [row for row, is_late in zip(old, late, strict=True) if is_late]
        return Key(world, before, after, [row for row in rows if row.mark != "old"])

    return st.integers(0, 2**32 - 1).map(drawn).filter(lambda key: bool(key.seen))


def _rows(world: World, rng: np.random.Generator, share_void: float) -> list[Row]:
    rows = []
    for at, us in _places_around(world, rng):
        may = _marks(world, us)
        void = ("old", "on time", "dead") if rng.random() < share_void else ()
        rows += [
            Row(None if mark in void else at, us, mark) for mark in may[rng.integers(len(may))]
        ]
    return rows


def _places_around(world: World, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Places and times in a row, from before what is kept up to the newest event."""
    before_us = world.newest_us if world.before_us == BEGINNING else world.before_us
    reach_us, n_slots = world.lateness_us + 2 * world.span_us, int(rng.integers(1, N_SLOTS + 1))
    start_us = int(rng.integers(before_us - reach_us, world.newest_us + 1))
    if world.numbered:
        first, further_us = int(rng.integers(-5, 6)), rng.choice([0, 1, 1, 2, 4], n_slots)
        times_us = (start_us + np.cumsum(further_us)).tolist()
        return [(first + nr, us) for nr, us in enumerate(times_us)]
    step = world.places.step or 1
    times_us = start_us + step * np.arange(n_slots)
    between_us = times_us[rng.random(n_slots) < 1 / 8] + min(step - 1, 1)
    return [(us, us) for us in np.union1d(times_us, between_us).tolist()]


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
        may += [*late, ("old", "dead"), ("old", "due"), ("old", "waited")]
    return may


COLUMNS = """n bigint, us bigint, id int, _old boolean, _new boolean, _waited boolean, _due boolean,
    _reason string, _beside struct<at: bigint, us: bigint>,
    _fresh boolean, _lately boolean, _n_on_time bigint,
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
        fate = is_due, reason, beside(key, Row(at, us, mark))
        yield at, us, nr, mark == "old", is_late, mark == "waited", *fate, *of_key


def beside(key: Key, row: Row) -> tuple[int, int] | None:
    """The place and time of what is before a late row that has no row kept behind it."""
    last_at = max((old.at for old in key.kept if old.at is not None), default=BEGINNING)
    if row.mark in ("old", "on time") or row.at is None or row.at < last_at:
        return None
    others = [(one.at, one.us) for one in key.seen if one.at is not None and one.mark != "on time"]
    return max((one for one in others if one[0] < row.at), default=(BEGINNING, BEGINNING))
