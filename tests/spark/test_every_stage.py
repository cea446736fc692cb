"""What holds of every system in the registry, whoever wrote it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.core.ledger import Ledger
from laxity.core.report import Report
from laxity.registry import systems
from laxity.spark.storage.checkpoint import read_last_commit
from laxity.spark.storage.files import LocalFiles
from laxity.spark.storage.segments import read_table
from support import feeds
from support.crashes import CrashError, crashing
from support.stage_cases import CASES, Results, feed, meters

pytestmark = pytest.mark.spark

NAMES = [system.name for system in systems()]
CUTS = (7, 19)
MORE = [pytest.param(point, marks=pytest.mark.long) for point in ("state.exit", "commit.exit")]
POINTS = ["output.exit", *MORE]
QUICK = {("apply", "revise"), ("revise", "apply"), ("echo", "apply")}
PAIRS = [
    pytest.param(first, second, marks=() if (first, second) in QUICK else pytest.mark.long)
    for first, second in product(NAMES, NAMES)
    if CASES[first].after and CASES[second].after and (first != second or first == "apply")
]


def run(stream: lx.Stream, folder: Path, drain: bool = True) -> list[Report]:
    query = stream.start(
        "every",
        sink=lx.parquet(str(folder / "out")),
        checkpoint=str(folder / "checkpoint"),
        trigger="available_now",
        drain=drain,
    )
    assert query.await_termination(120)
    return query.reports()


@dataclass(frozen=True)
class Run:
    """A run of one system to its end."""

    results: Results
    reports: list[Report]


Runs = dict[str, Run]


def runs(spark: SparkSession, folders: pytest.TempPathFactory, cuts: Sequence[int]) -> Runs:
    """Every system, its input cut so."""
    found = {}
    for name, case in CASES.items():
        folder = folders.mktemp(name)
        feed(folder, cuts)
        reports = run(case.stream(spark, folder), folder)
        found[name] = Run(case.results(feeds.written(folder / "out")), reports)
    return found


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """All rows in one batch."""
    return runs(spark, tmp_path_factory, ())


@pytest.fixture(scope="module")
def cut(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The same rows in several."""
    return runs(spark, tmp_path_factory, CUTS)


def test_every_registered_system_has_a_case() -> None:
    assert set(CASES) == set(NAMES)


@pytest.mark.production
@pytest.mark.parametrize("name", NAMES)
def test_any_batching_gives_the_same(whole: Runs, cut: Runs, name: str) -> None:
    assert cut[name].results == whole[name].results != []


@pytest.mark.production
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", NAMES)
def test_crash_anywhere_changes_nothing(
    spark: SparkSession, work: Path, whole: Runs, name: str, point: str
) -> None:
    feed(work, CUTS)
    with crashing(2, point), pytest.raises(CrashError):
        run(CASES[name].stream(spark, work), work)
    run(CASES[name].stream(spark, work), work)
    assert CASES[name].results(feeds.written(work / "out")) == whole[name].results


@pytest.mark.parametrize("name", NAMES)
def test_accounts_add_up_in_every_batch_and_at_every_stage(cut: Runs, name: str) -> None:
    before = Ledger()
    for report in cut[name].reports:
        assert report.ledger.check() == before.after(report.rows)
        assert {label.split("-")[0] for label in report.accounts} >= {name}
        assert all(one.check() for one in report.accounts.values())
        assert report.ledger.held == sum(one.held for one in report.accounts.values())
        before = report.ledger
    assert before.rows_in > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_run_goes_on_where_the_last_one_stopped(
    spark: SparkSession, work: Path, whole: Runs, name: str
) -> None:
    feed(work, [7], last=19)
    run(CASES[name].stream(spark, work), work, drain=False)
    commit = read_last_commit(LocalFiles(str(work / "checkpoint")))
    assert commit is not None
    assert json.loads(json.dumps(commit.memories)) == commit.memories
    run(CASES[name].stream(spark, work), work, drain=False)  # nothing new: an empty batch
    feed(work, [30], first=19)
    run(CASES[name].stream(spark, work), work)
    assert CASES[name].results(feeds.written(work / "out")) == whole[name].results


@pytest.mark.parametrize("name", NAMES)
def test_the_end_of_the_input_leaves_nothing_behind(cut: Runs, name: str) -> None:
    last = cut[name].reports[-1]
    assert (last.drained, last.ledger.held) == (True, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_silent_source_stalls_nothing_for_ever(
    spark: SparkSession, work: Path, name: str
) -> None:
    """One that never speaks holds rows up until the input has ended, or nobody waits for it."""
    feed(work, (), silent="scats" if name in ("merge", "join") else "meters")
    last = run(CASES[name].stream(spark, work), work)[-1]
    assert (last.drained, last.ledger.check().held) == (True, 0)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_does_not_grow_with_the_stream(
    spark: SparkSession, work: Path, name: str
) -> None:
    """Rows in state tables, long after all that was ever late has come."""

    def kept() -> int:
        files = LocalFiles(str(work / "checkpoint"))
        commit = read_last_commit(files)
        assert commit is not None
        tables = [table for table in commit.tables.values() if table.segments]
        return sum(read_table(spark, files, table).count() for table in tables)

    sizes = []
    for n in range(4):
        feed(work, [], first=30 * n, last=30 * (n + 1), n_rows=150)
        run(CASES[name].stream(spark, work), work, drain=False)
        sizes.append(kept())
    assert max(sizes[2:]) <= 1.2 * max(sizes[:2]) + 5, sizes


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_any_stage_may_stand_behind_any_other(
    spark: SparkSession, work: Path, first: str, second: str
) -> None:
    n_rows, stream = feed(work, CUTS), meters(spark, work)
    for name in (first, second):
        after = CASES[name].after
        assert after is not None
        stream = after(stream)
    last = run(stream, work)[-1]
    assert last.ledger.check().held == 0
    assert last.ledger.rows_in - last.ledger.made == n_rows


@pytest.mark.parametrize("name", ["revise", "echo"])
def test_a_stage_that_is_there_already_is_refused(
    spark: SparkSession, work: Path, name: str
) -> None:
    after = CASES[name].after
    assert after is not None
    with pytest.raises(lx.ConfigError, match=rf"there is a stage {name} already|revised once"):
        after(after(meters(spark, work)))
