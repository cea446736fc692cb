import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.cli import app, main
from laxity.cli.demo import summarise
from laxity.cli.doctor import Finding, _spark
from support import traces


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*words: str) -> str:
        assert app(words) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def checkpoint(spark: SparkSession, work: Path) -> str:
    """A finished run with dead letters."""
    trace = traces.write_trace(work / "trace.parquet", traces.dirty_rows(200))
    traces.run(lx.stream(traces.trace_source(spark, trace, 200), deadline="6s"), work, lx.memory())
    return str(work / "checkpoint")


def fails(*words: str, code: int) -> str:
    command = [sys.executable, "-m", "laxity", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr + done.stdout


@pytest.mark.spark
def test_top_shows_the_account_and_the_batches(told: Any, checkpoint: str) -> None:
    shown = told("top", checkpoint)
    assert "test · not running" in shown
    assert "rows in" in shown
    assert "broken" in shown


@pytest.mark.spark
def test_top_as_json_is_one_document(told: Any, checkpoint: str) -> None:
    document = json.loads(told("top", checkpoint, "--json"))
    assert document["running"] is False
    assert document["reports"][-1]["ledger"]["rows_in"] == 200


@pytest.mark.spark
def test_late_shows_dead_letters_with_their_reasons(told: Any, checkpoint: str) -> None:
    shown = told("late", checkpoint)
    assert all(reason in shown for reason in traces.REASONS)
    document = json.loads(told("late", checkpoint, "--json", "--rows", "2"))
    assert document["counts"]["bus · no timestamp"] == 2
    assert len(document["rows"]) == 2
    assert told("late", checkpoint, "--kind", "late").strip() == "no late rows"


def test_doctor_finds_what_the_tests_run_on(told: Any) -> None:
    document = json.loads(told("doctor", "--json"))
    assert document["ok"]
    assert {one["what"] for one in document["findings"]} >= {"Java", "Python", "pyspark"}
    assert "pyspark" in told("doctor")


@pytest.mark.parametrize(
    ("installed", "ok", "says"),
    [
        ("4.3.0", True, "4.3.0"),
        ("4.1.4", True, "4.1.4; rows_per_batch of a trace is not heeded"),
        ("4.0.5", False, "Laxity runs on Spark 4.1 to 4.3: pip install 'pyspark[sql]==4.3.*'"),
        ("4.4.0", False, "Laxity runs on Spark 4.1 to 4.3"),
    ],
)
def test_doctor_says_what_a_version_of_spark_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, installed: str, ok: bool, says: str
) -> None:
    monkeypatch.setattr("laxity.cli.doctor.version", lambda _: installed)
    monkeypatch.setattr("laxity.cli.doctor.LOOKS", [_spark])
    assert app(["doctor", "--json"]) == (0 if ok else 1)
    assert says in capsys.readouterr().out


def test_doctor_fails_with_the_cure(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    missing = Finding("Java", "none", ok=False, cure="install it")
    monkeypatch.setattr("laxity.cli.doctor.LOOKS", [lambda: missing])
    assert app(["doctor"]) == 1
    assert "install it" in capsys.readouterr().out


def test_doctor_shows_the_cache_folder_and_who_else_can_write_there(
    told: Any, own_cache: Path
) -> None:
    assert str(own_cache / "laxity") in told("doctor", "--json")
    (own_cache / "laxity").chmod(0o777)
    try:
        assert app(["doctor", "--json"]) == 1
    finally:
        (own_cache / "laxity").chmod(0o700)


def test_bad_usage_is_two_and_a_wrong_checkpoint_one(work: Path) -> None:
    assert "--seconds must be at least 1, got 0" in fails("demo", "--seconds", "0", code=2)
    assert "is not a Laxity checkpoint" in fails("top", str(work), code=1)
    assert "is not a Laxity checkpoint" in fails("late", str(work), code=1)
    assert "error: nope:x: No module named 'nope'" in fails("run", "nope:x", code=2)


def test_an_unknown_command_is_bad_usage() -> None:
    fails("nonsense", code=2)


def test_main_exits_with_the_commands_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["laxity", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0


def test_a_summary_of_nothing_keeps_no_promise(work: Path) -> None:
    assert summarise([], work)["kept"] is False


@pytest.mark.spark
def test_the_demo_ends_by_itself_and_leaves_a_report(
    told: Any, spark: SparkSession, work: Path
) -> None:
    document = json.loads(told("demo", "--seconds", "3", "--no-web", "--json", "--out", str(work)))
    rows = document["rows"]
    assert rows["rows_in"] == rows["released"] + rows["held"] > 0
    assert sum(document["reads"].values()) == rows["released"]
    assert document["pairs"]["compared"] > document["results"]
    saved = json.loads((work / "run-1" / "report.json").read_text())
    assert saved == document


@pytest.mark.spark
def test_the_meters_demo_ends_by_itself_and_leaves_a_report(
    told: Any, spark: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laxity.cli.meters.METERS", 5)
    monkeypatch.setattr("laxity.cli.meters.DAYS", 3)
    words = ("demo", "meters", "--seconds", "60", "--json", "--out", str(work))
    document = json.loads(told(*words))
    assert document["rows"]["rows_in"] == document["rows"]["released"] > 5 * 24
    assert set(document["alerts"]) <= {"excess", "negative", "pattern"}
    assert json.loads((work / "run-1" / "report.json").read_text()) == document
