"""Many keys in one job: a rule in SQL is asked about hundreds of cases, each a key of its own.

A world is what all keys of a batch share: how rows are counted, and the moment. Keys are named by
two columns, one of which is null for every second key, and has an unusual name.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from laxity.core.holes import BEGINNING
from laxity.core.moment import Moment
from laxity.core.revise import Shape
from laxity.spark.revising.places import Places

Case = TypeVar("Case")
BY = ("meter", "a phase")


def drawn(cases: st.SearchStrategy[Case], n: int) -> list[Case]:
    """So many cases, the same in every run unless the profile says otherwise."""
    found: list[Case] = []

    @settings(
        max_examples=n,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    )
    @given(cases)
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    return found


@dataclass(frozen=True)
class World:
    """How rows are counted, how far they reach, and when it is."""

    places: Places
    span_us: int
    lateness_us: int
    before_us: int
    newest_us: int

    @property
    def moment(self) -> Moment:
        """The moment."""
        shape = Shape.of([(self.span_us, 1)])
        return Moment(shape, self.lateness_us, self.before_us, self.newest_us)

    @property
    def numbered(self) -> bool:
        """Whether rows are counted by their number."""
        return self.places.number is not None


def by_period(step: int, span_us: int, lateness_us: int, before_us: int, newest_us: int) -> World:
    """Rows come once in a `step`."""
    return World(Places(BY, step), span_us, lateness_us, before_us, newest_us)


def by_sequence(span_us: int, lateness_us: int, before_us: int, newest_us: int) -> World:
    """Rows are numbered."""
    return World(Places(BY, 1, "n"), span_us, lateness_us, before_us, newest_us)


def uncounted(span_us: int, lateness_us: int, before_us: int, newest_us: int) -> World:
    """Nobody sees what is missing."""
    return World(Places(BY), span_us, lateness_us, before_us, newest_us)


COUNTED = [
    by_period(1, span_us=4, lateness_us=9, before_us=0, newest_us=3),
    by_period(3, span_us=5, lateness_us=2, before_us=-20, newest_us=-8),
    by_period(2, span_us=3, lateness_us=7, before_us=31, newest_us=31),
    by_period(2, span_us=6, lateness_us=0, before_us=BEGINNING, newest_us=5),
    by_sequence(span_us=4, lateness_us=9, before_us=2, newest_us=4),
    by_sequence(span_us=3, lateness_us=4, before_us=-7, newest_us=12),
]
UNCOUNTED = uncounted(span_us=4, lateness_us=6, before_us=5, newest_us=9)


def named(case: int) -> tuple[int, str | None]:
    """The key of a case."""
    return case // 2, None if case % 2 else "day"


def case_of(row: SparkRow) -> int:
    """The case of a key."""
    return int(row["meter"]) * 2 + int(row["a phase"] is None)


def frame(
    spark: SparkSession, rows: Iterable[tuple[int, Sequence[Any]]], columns: str
) -> DataFrame:
    """Rows of cases; a column `us` is told as `_event` too."""
    values = [(*named(case), *row) for case, row in rows]
    made = spark.createDataFrame(values, f"meter bigint, `a phase` string, {columns}")
    if "us" not in made.columns:
        return made
    return made.withColumn("_event", F.expr("timestamp_micros(us)"))


def in_one_job(of_worlds: Iterable[DataFrame]) -> list[dict[int, list[SparkRow]]]:
    """The rows of each world by case; all are worked out by one job."""
    parts = [rows.withColumn("world", F.lit(nr)) for nr, rows in enumerate(of_worlds)]
    found: list[dict[int, list[SparkRow]]] = [defaultdict(list) for _ in parts]
    for row in reduce(DataFrame.union, parts).collect():
        found[row["world"]][case_of(row)].append(row)
    return found


def same_in_all(
    found: Sequence[dict[int, list[SparkRow]]],
    cases: Sequence[Sequence[Case]],
    got: Callable[[list[SparkRow]], object],
    want: Callable[[int, Case], object],
) -> None:
    """What was found of every case is what is wanted; else it is told of the shortest."""
    wrong = []
    for world, (rows, of_world) in enumerate(zip(found, cases, strict=True)):
        for nr, case in enumerate(of_world):
            here, there = got(rows.get(nr, [])), want(world, case)
            if here != there:
                wrong.append(f"{case!r} in world {world}: {here} is not {there}")
    n_cases = sum(map(len, cases))
    assert not wrong, f"{len(wrong)} of {n_cases} cases, such as {min(wrong, key=len)}"
