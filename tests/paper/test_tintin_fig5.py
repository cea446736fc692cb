from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.paper.figure import draw, figure
from laxity.paper.reprocessing import EAGER, LAZY, WAIT
from laxity.paper.result import Result, Row, Value, versions
from laxity.paper.tintin_fig5 import COMPARABLE, DISCARD, SORTED, WAYS, Setup, claims, measure
from laxity.sim.workload.town import Town

TINY = Setup((300,), compared=300, on_spark=Town(days=4, max_late_days=2, late_share=0.02))


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> list[Row]:
    """Measured, and then said to be of a town large enough to compare speed."""
    assert lx.session() is spark
    return [row | {"meters": COMPARABLE} for row in measure(TINY, 7)]


@pytest.mark.spark
def test_every_way_reads_every_row_that_comes(rows: list[Row]) -> None:
    assert [row["how"] for row in rows] == list(WAYS)
    n_rows = {str(row["how"]): row["rows"] for row in rows}
    assert n_rows[LAZY] == n_rows[EAGER] == n_rows[DISCARD] == n_rows[WAIT]
    assert 0 < int(n_rows[SORTED] or 0) - int(n_rows[LAZY] or 0) < 300 * 24  # not come by the end
    assert all(float(row["rows_per_s"] or 0) > 0 for row in rows)


@pytest.mark.spark
def test_each_claim_fails_on_rows_that_contradict_it(rows: list[Row]) -> None:
    speeds = {LAZY: 50, EAGER: 50, DISCARD: 60, SORTED: 60, WAIT: 9}
    rows = [row | {"rows_per_s": speeds[str(row["how"])]} for row in rows]

    def doctored(how: str, **change: Value) -> list[str]:
        changed = [row | change if row["how"] == how else row for row in rows]
        return [claim.claim for claim in claims(changed) if not claim.holds]

    held = next(int(row["held"] or 0) for row in rows if row["how"] == WAIT)
    assert doctored(LAZY) == []
    assert "5 times the throughput" in doctored(WAIT, rows_per_s=10.1)[0]
    assert "cannot be used" in doctored(SORTED, rows_per_s=49)[0]
    assert "within 2 hours" in doctored(LAZY, within_2h=0.89)[0]
    assert "logical latency" in doctored(LAZY, logical_latency_h=961)[0]
    assert "50 times fewer" in doctored(LAZY, held=held // 49)[0]


@pytest.mark.spark
def test_it_is_drawn(rows: list[Row], tmp_path: Path) -> None:
    result = Result(
        id="tintin-fig5",
        scale="quick",
        seed=7,
        versions=versions(),
        config={},
        rows=rows,
        claims=claims(rows),
    )
    assert figure("tintin-fig5").SCALES["quick"].meters
    assert draw(result, tmp_path).stat().st_size > 10_000
