"""What passes between a stage and the engine: its needs, its plan, and what came of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame

from laxity.core.ledger import Fates
from laxity.core.progress import Frontier, Passed
from laxity.core.report import Decision
from laxity.core.slack import Seen
from laxity.spark.rows.measure import Numbers, Riding

Count = Riding | Callable[[], Numbers]
Counts = Mapping[str, Numbers]


@dataclass(frozen=True)
class Needs:
    """What a stage needs of the rows it gets; the engine sees to it.

    `numbers`: aggregates of them as SQL, by name, each a call of one function, for
    `BatchContext.numbers`. `key`: columns whose
    rows are to lie in one place. `ordered`: a partition's rows in the order of the stage before.
    """

    numbers: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    ordered: bool = False

    @property
    def looked_at(self) -> bool:
        """Whether the rows have to be there before the stage decides."""
        return bool(self.numbers or self.key)


@dataclass(frozen=True)
class Order:
    """How rows are to lie when they are written: by these columns, most events in the span."""

    by: Sequence[Column]
    n_rows: int
    span_us: tuple[int | None, int | None]


@dataclass(frozen=True)
class StageResult:
    """What a batch came to in one stage.

    `state`: what it wants back next time (JSON values). `fates`: what became of the rows that
    entered, `released` being those it passed on, or took to make others of; None if it did not
    count. `report`: its numbers. `seen`: what to hold against its promises, by name. `late` gives
    the rows counted as `late_rejected`, with their columns and `late_by` in seconds; `dead` those
    counted as dead, with a `_reason`. `passed`: the rows passed on, in time.
    """

    state: dict[str, Any] = field(default_factory=dict)
    fates: Fates | None = None
    report: Mapping[str, Any] = field(default_factory=dict)
    seen: Mapping[str, float | None] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    late: Callable[[], DataFrame] | None = None
    dead: Callable[[], DataFrame] | None = None
    passed: Passed | None = None


@dataclass(frozen=True)
class Planned:
    """The rows a stage passes on, as a plan; what must be counted, and how it is then finished.

    `counts`: numbers that ride on the output or on a table, or functions that wait for a job; all
    are resolved for `finish`, which also gets the result of the stage before. `jobs`: functions
    that wait for what runs beside and still plans tables. `empty`: there are no rows, and no need
    to look. `frontier`: how far rows are passed on, `heard`: what a merge saw, by the name its
    slack rule goes by, if another merge decides on it.
    """

    rows: DataFrame
    finish: Callable[[Counts, StageResult | None], StageResult]
    counts: Mapping[str, Count] = field(default_factory=dict)
    jobs: tuple[Callable[[], object], ...] = ()
    order: Order | None = None
    empty: bool = False
    frontier: Frontier | None = None
    heard: Mapping[str, Seen] = field(default_factory=dict)
