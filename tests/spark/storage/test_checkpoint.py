"""What a checkpoint refuses, and that a refusal harms nothing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.spark.storage import checkpoint
from laxity.spark.storage.files import LocalFiles
from laxity.spark.storage.reports import KEEP_FILES, PER_FILE, ReportLog, read_reports
from support import traces

pytestmark = pytest.mark.spark


@pytest.fixture
def trace(work: Path) -> Path:
    return traces.write_trace(work / "trace.parquet", first(200))


def first(n_rows: int) -> dict[str, Any]:
    """The first so many rows of one trace."""
    return {name: column[:n_rows] for name, column in traces.clean_rows(300).items()}


@pytest.fixture
def done(spark: SparkSession, work: Path, trace: Path) -> Path:
    """A folder with a finished run in it."""
    traces.run(stream(spark, trace), work)
    return work


def stream(spark: SparkSession, trace: Path, name: str = "bus") -> Any:
    return lx.stream(traces.trace_source(spark, trace, 100, name))


def durable(folder: Path) -> dict[str, bytes]:
    """Every file that counts, byte for byte."""
    roots = (folder / "checkpoint" / "commits", folder / "out")
    return {str(p): p.read_bytes() for root in roots for p in root.rglob("*") if p.is_file()}


def test_a_finished_query_goes_on_with_new_rows_only(
    spark: SparkSession, done: Path, trace: Path
) -> None:
    before = lx.read_letters(str(done / "checkpoint")).count()
    query = traces.run(stream(spark, trace), done)
    assert query.report().ledger.released == 200
    assert spark.read.parquet(str(done / "out")).count() == 200
    assert before == 0
    assert not (done / "checkpoint" / "lock.json").exists()


def test_another_pipelines_checkpoint_is_refused(
    spark: SparkSession, done: Path, trace: Path
) -> None:
    before = durable(done)
    with pytest.raises(lx.StateError, match="belongs to another pipeline: its pipeline is 'test'"):
        traces.run(stream(spark, trace), done, name="other")
    with pytest.raises(lx.StateError, match=r"its sources is \('bus',\), this one's is \('tram',"):
        traces.run(stream(spark, trace, "tram"), done)
    with pytest.raises(lx.StateError, match="its stages is"):
        traces.run(stream(spark, trace).apply(lambda rows: rows), done)
    assert durable(done) == before
    traces.run(stream(spark, trace), done)


@pytest.mark.parametrize("name", ["laxity.json", "commits/1.json"])
def test_an_incompatible_or_damaged_file_is_refused(
    spark: SparkSession, done: Path, trace: Path, name: str
) -> None:
    path = done / "checkpoint" / name
    if not path.exists():
        path = max((done / "checkpoint" / "commits").iterdir())
    good = path.read_text()
    path.write_text(json.dumps(json.loads(good) | {"format": 99}))
    with pytest.raises(
        lx.StateError, match=r"format 99, this Laxity reads 7 and 8: use the version"
    ):
        traces.run(stream(spark, trace), done)
    path.write_text(good[: len(good) // 2])
    with pytest.raises(lx.StateError, match="cannot be read .* incompatible version"):
        traces.run(stream(spark, trace), done)
    path.write_text(good)
    traces.run(stream(spark, trace), done)


def test_a_folder_that_is_no_checkpoint_is_refused(
    spark: SparkSession, work: Path, trace: Path
) -> None:
    (work / "checkpoint" / "spark" / "offsets").mkdir(parents=True)
    with pytest.raises(lx.StateError, match=r"has data but no laxity\.json"):
        traces.run(stream(spark, trace), work)
    with pytest.raises(lx.StateError, match="holds no committed batch"):
        lx.read_letters(str(work / "nowhere"))


def test_logs_that_do_not_fit_each_other_are_refused(
    spark: SparkSession, done: Path, trace: Path
) -> None:
    offsets = done / "checkpoint" / "spark" / "offsets"
    offsets.rename(done / "elsewhere")
    with pytest.raises(lx.StateError, match="is damaged: Laxity committed batch"):
        traces.run(stream(spark, trace), done)
    (done / "elsewhere").rename(offsets)
    traces.run(stream(spark, trace), done)


def test_a_second_process_is_refused_and_the_first_goes_on(
    spark: SparkSession, work: Path, trace: Path
) -> None:
    query = stream(spark, trace).start(
        "test", sink=lx.parquet(str(work / "out")), checkpoint=str(work / "checkpoint")
    )
    with pytest.raises(lx.StateError, match="is in use by process"):
        traces.run(stream(spark, trace), work)
    code = (
        "from laxity.spark.storage.files import LocalFiles; "
        "from laxity.spark.storage.lock import Lock; "
        f"Lock(LocalFiles({str(work / 'checkpoint')!r}), 1)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "is in use by process" in told.stderr
    assert query.is_active
    query.stop()
    assert not query.is_active
    assert query.await_termination()
    traces.run(stream(spark, trace), work)


def test_a_full_disk_stops_the_query_with_the_cure_and_harms_nothing(
    spark: SparkSession, done: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = durable(done)
    plain_write = LocalFiles.write

    def full(self: LocalFiles, name: str, content: bytes) -> None:
        if name.startswith("commits/"):
            raise OSError(28, "No space left on device")
        plain_write(self, name, content)

    monkeypatch.setattr(LocalFiles, "write", full)
    longer = traces.write_trace(done / "trace.parquet", first(300))
    with pytest.raises(lx.EngineError, match="no space left while writing batch .* free some"):
        traces.run(stream(spark, longer), done)
    assert before.items() <= durable(done).items()
    monkeypatch.undo()
    query = traces.run(stream(spark, longer), done)
    assert query.report().ledger.released == 300
    assert spark.read.parquet(str(done / "out")).select("id").distinct().count() == 300


def test_a_batch_that_skips_others_is_refused(spark: SparkSession, done: Path, trace: Path) -> None:
    query = traces.run(stream(spark, trace), done)
    with pytest.raises(lx.StateError, match="Spark is at batch 99, the last commit is"):
        query._runner(spark.range(1), 99)
    query._runner(spark.range(1), 0)  # done long ago: nothing happens
    assert query.report().ledger.released == 200


def test_only_the_last_few_commits_are_kept(done: Path) -> None:
    assert len(list((done / "checkpoint" / "commits").iterdir())) <= checkpoint.KEEP


def test_reports_are_kept_in_a_bounded_number_of_files(done: Path, tmp_path: Path) -> None:
    one = read_reports(LocalFiles(str(done / "checkpoint")))[-1]
    files = LocalFiles(str(tmp_path / "log"))
    log = ReportLog(files)
    for batch_id in range(PER_FILE * 3 + 5):
        log.append(one.model_copy(update={"batch_id": batch_id}))
        if batch_id % 70 == 0:
            log = ReportLog(files)
            log.append(one.model_copy(update={"batch_id": batch_id}))
    assert [r.batch_id for r in read_reports(files)] == list(range(PER_FILE * 3 + 5))
    assert [r.batch_id for r in read_reports(files, last=7)] == list(range(298, 305))
    assert len(files.names("reports")) == 4
    for first in range(1000, 1000 + KEEP_FILES + 5):
        files.write(f"reports/{first}.jsonl", b"")
    full = ReportLog(files)
    full._open = [one.model_copy(update={"batch_id": 5000})] * PER_FILE
    full.append(one.model_copy(update={"batch_id": 5001}))
    assert len(files.names("reports")) == KEEP_FILES


def test_a_stop_finishes_the_batch_under_way_and_begins_no_other(
    spark: SparkSession, work: Path, trace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        query = stream(spark, trace).start(
            "test", sink=lx.parquet(str(work / "out")), checkpoint=str(work / "checkpoint")
        )
        while not query.reports():
            query.await_termination(0.05)
        query.stop()
        assert query.await_termination()
        with pytest.raises(lx.StateError, match="the query is being stopped"):
            query._runner(spark.range(1), 10**6)
    assert "Exception" not in capfd.readouterr().err
    traces.run(stream(spark, trace), work)
    assert spark.read.parquet(str(work / "out")).count() == 200
