"""Revise on Spark: an answer at once, exact once late rows are there, and only near them again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from readings import Reading, newest, plain_totals, run

pytestmark = pytest.mark.spark

WAYS: list[dict[str, Any]] = [{"period": "1h"}, {"sequence": "n"}, {}]


def shuffled(rng: np.random.Generator, n_hours: int, lateness: int) -> list[list[Reading]]:
    """Readings of three meters, some lost, some late within the bound, cut into batches."""
    rows = []
    for meter in range(3):
        for hour in range(int(rng.integers(0, 6)), n_hours - int(rng.integers(0, 9))):
            late = int(rng.integers(0, lateness + 1)) if rng.random() < 0.3 else 0
            if rng.random() > 0.1:
                rows.append((hour + late, meter, hour, int(rng.integers(0, 100))))
    rows.sort()
    cuts = np.sort(rng.integers(0, len(rows), 5)).tolist()
    parts = np.split(np.array(rows), cuts)
    return [[(int(m), int(h), int(v)) for _, m, h, v in rng.permutation(part)] for part in parts]


@pytest.mark.parametrize("seed", range(6))
def test_any_batching_within_the_bound_gives_what_a_plain_batch_gives(
    spark: SparkSession, work: Path, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    batches = shuffled(rng, n_hours=30, lateness=(4, 12, 25)[seed % 3])
    terms = WAYS[seed % 3] | {"trigger": ("eager", "lazy")[seed // 3]}
    query, results = run(spark, work, batches, lateness="25h", **terms)
    everything = [row for batch in batches for row in batch]
    waiting = query.report().ledger.held
    ledger = query.report().ledger
    assert ledger.rows_in == len(everything) == ledger.released + ledger.held
    if not waiting:
        assert newest(results) == plain_totals(everything)
