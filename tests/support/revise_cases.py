"""Cases for revise on Spark: an app for it and for the simulator, rows, batches, and a crash.

Keys do not know of each other, so that one run of many keys is many cases.
"""

from collections.abc import Hashable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import laxity as lx
from laxity.core.triggers import Trigger, Waiting, eager, lazy
from laxity.sim.retained import Terms, rows_of
from laxity.sim.slices import Slices
from laxity.sim.windows import Aggregate, App, Row
from support import readings, revising

N_KEYS, N_TIMES = 24, 40
START_US = 60 * 28_000_000_000_000  # every window of up to six begins here
POINTS = ["stages.exit", "output.enter", "output.exit", "state.exit", "commit.exit", "clean.exit"]


def some_late(waiting: Waiting) -> Any:
    return (waiting.n_late >= 3) | (waiting.frontier_us - waiting.oldest_us >= 5)


class Case(NamedTuple):
    """An app, its terms, batches of rows, and the batch and point of a crash."""

    app: App
    terms: Terms
    trigger: Trigger
    batches: list[list[tuple[int, Row]]]
    crash: tuple[int, str]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    app, step = draw(revising.apps()), draw(st.sampled_from([1, 2]))
    by = draw(st.sampled_from(["period", "period", "number", "nothing"]))
    lateness_us = draw(st.sampled_from([15, 40, 3, 0]))
    terms = Terms(lateness_us, step if by == "period" else None, by == "number")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    come = [row for key in range(N_KEYS) for row in _rows(rng, key, step, lateness_us)]
    come.sort(key=lambda row: (row[0], -row[2].ts_us))
    cuts = sorted(rng.integers(0, len(come), draw(st.sampled_from([3, 4, 2, 1]))).tolist())
    batches = [[row[1:] for row in come[a:b]] for a, b in pairwise([0, *cuts, len(come)])]
    end_us = START_US + N_TIMES * step + lateness_us + 2 * app.shape.span_us
    batches = [*(batch for batch in batches if batch), [(0, Row(end_us, N_KEYS, 0))]]
    crash = draw(st.integers(0, len(batches) - 1)), draw(st.sampled_from(POINTS))
    return Case(app, terms, draw(st.sampled_from([eager, lazy, some_late])), batches, crash)


def _rows(
    rng: np.random.Generator, key: int, step: int, lateness_us: int
) -> list[tuple[int, int, Row]]:
    """A key's rows with when they come and their numbers: some never, some late, some in bursts."""
    first, last = np.sort(rng.integers(0, N_TIMES, 2)) if rng.random() < 0.3 else (0, N_TIMES)
    lost, late, burst = rng.choice([0.0, 0.1, 0.5]), rng.choice([0.0, 0.1, 0.5]), rng.random() < 0.3
    rows = []
    for number, time in enumerate(range(int(first), int(last))):
        ts_us = START_US + time * step
        delay_us = int(rng.integers(0, lateness_us + 1)) if rng.random() < late else 0
        if burst and time % 10 < 6:
            delay_us = min(lateness_us, (10 - time % 10) * step)
        if rng.random() >= lost:
            value = int(rng.integers(0, 100))
            rows.append((ts_us + delay_us, number, Row(ts_us, key, value)))
    return rows


def on_spark(app: App) -> lx.App:
    """The same app for Spark; values are told as text."""

    def fn(rows: DataFrame) -> DataFrame:
        rows = rows.select("meter", "_event", F.col("kwh").cast("string").alias("value"))
        for step in app.steps:
            rows = _windows(rows, step) if isinstance(step, Aggregate) else STEPS[step](rows)
        return rows.drop("n")

    aggregates = [step for step in app.steps if isinstance(step, Aggregate)]
    windows = [(f"{one.size_us}us", f"{one.advance_us}us") for one in aggregates]
    return lx.App(fn, windows, kind="kind" if revising.doubled in app.steps else None)


def _windows(rows: DataFrame, aggregate: Aggregate) -> DataFrame:
    lengths = (f"{us} microseconds" for us in (aggregate.size_us, aggregate.advance_us))
    parts = F.expr("array_sort(collect_list(struct(unix_micros(_event) AS us, value)))")
    found = rows.groupBy("meter", F.window("_event", *lengths)).agg(parts.alias("parts"))
    text = "transform(parts, p -> concat(p.us - unix_micros(window.start), ':', p.value))"
    found = found.selectExpr(
        "meter",
        "window.start AS _event",
        f"concat('[', array_join({text}, ' '), ']') AS value",
        "size(parts) AS n",
    )
    return found.where("n > 1") if aggregate.fn is revising.two_or_more else found


def _odd_first(rows: DataFrame) -> DataFrame:
    return rows.where("value LIKE '[0:%'")


def _doubled(rows: DataFrame) -> DataFrame:
    both = "array(struct('all' AS kind, value), struct('n' AS kind, string(n) AS value))"
    return rows.selectExpr("meter", "_event", "n", f"inline({both})")


STEPS: dict[Any, Any] = {revising.odd_first: _odd_first, revising.doubled: _doubled}


def _text(value: Any, kind: Any) -> str | None:
    """A value of the simulator as the app on Spark tells it."""
    if kind is not None and value is not None:
        value = value[1]
    if isinstance(value, tuple):
        return "[" + " ".join(f"{us}:{_text(part, None)}" for us, part in value) + "]"
    return None if value is None else str(value)


class Told(NamedTuple):
    """What is told of a result; the value as text, None once it is retracted."""

    key: int
    us: int
    kind: Hashable
    value: str | None
    revision: int


def simulated(case: Case) -> list[set[Told]]:
    """What the simulator tells, batch by batch."""
    slices = Slices(case.app, case.terms, case.trigger)
    told = []
    for batch in case.batches:
        numbers, rows = zip(*batch, strict=True)
        ts_us, keys, values = zip(*rows, strict=True)
        answers = slices.batch(rows_of(keys, ts_us, values, numbers)).answers
        told.append(
            {Told(a.key, a.ts_us, a.kind, _text(a.value, a.kind), a.revision) for a in answers}
        )
    return told


def write(folder: Path, case: Case) -> None:
    """The batches as files."""
    for nr, batch in enumerate(case.batches):
        rows = [(row.key, number, row.value, row.ts_us) for number, row in batch]
        readings.write_rows(folder, nr, rows)
