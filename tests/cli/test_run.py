import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import laxity as lx
from laxity.cli import app
from laxity.cli.live import plain_interrupts
from laxity.spark.storage.files import LocalFiles
from laxity.spark.storage.reports import read_reports

BUSES = "support.streams:buses"
pytestmark = pytest.mark.spark


def places(work: Path) -> tuple[str, ...]:
    return "--sink", f"parquet:{work / 'out'}", "--checkpoint", str(work / "checkpoint")


def test_a_stream_is_started_and_summed_up_in_one_document(
    spark: SparkSession, work: Path, capsys: Any
) -> None:
    words = ("run", BUSES, "--set", "seconds=3", "--set", "pace=flood", *places(work))
    assert app([*words, "--trigger", "available_now", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["pipeline"] == "buses"
    assert document["rows"]["rows_in"] == 1500
    assert (
        sum(document["stages"]["merge"][mark] for mark in ("ready", "slack", "late"))
        == (document["rows"]["released"])
    )
    assert document["results"] == spark.read.parquet(str(work / "out")).count()
    assert document["batches"] >= 3


def test_a_run_without_anything_new_tells_the_account_and_is_well(
    spark: SparkSession, work: Path, capsys: Any
) -> None:
    words = ("run", BUSES, *places(work), "--trigger", "available_now", "--name", "twice")
    assert app(words) == 0
    shown = capsys.readouterr().out
    assert "merge: slack 1.00 s, in order" in shown
    assert "promises: kept in all of" in shown
    assert app([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"]["rows_in"] == 1000
    assert document["pipeline"] == "twice"


def test_a_run_leaves_rows_held_and_a_drain_lets_them_out(
    spark: SparkSession, work: Path, capsys: Any
) -> None:
    words = ("run", BUSES, *places(work), "--trigger", "available_now")
    assert app([*words, "--json"]) == 0
    held = json.loads(capsys.readouterr().out)["rows"]["held"]
    assert held > 0
    sink, where = places(work)[:2], places(work)[3]
    assert app(["drain", BUSES, where, *sink, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert (rows["held"], rows["released"]) == (0, rows["rows_in"])
    assert app(["top", where, "--once"]) == 0
    assert "not running, drained" in capsys.readouterr().out


def test_a_function_may_start_the_stream_itself_and_a_broken_promise_is_one(
    spark: SparkSession, work: Path, capsys: Any
) -> None:
    words = ("run", "support.streams:started", "--set", f"folder={work}")
    with pytest.raises(lx.ConfigError, match="so --name cannot be said here"):
        app([*words, "--name", "other"])
    assert not spark.streams.active
    (work / "late").mkdir()
    words = ("run", "support.streams:started", "--set", f"folder={work}/late")
    assert app([*words, "--set", "deadline=1us"]) == 1
    assert "promises: broken in" in capsys.readouterr().out


def test_what_stops_the_query_is_raised(spark: SparkSession, work: Path) -> None:
    with pytest.raises(Exception, match="no such bus"):
        app(["run", "support.streams:failing", *places(work), "--trigger", "available_now"])


def test_ctrl_c_lets_the_batch_under_way_finish(
    spark: SparkSession, work: Path, capsys: Any
) -> None:
    files = LocalFiles(str(work / "checkpoint"))

    def interrupt() -> None:
        until = time.monotonic() + 60
        while len(read_reports(files)) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    words = ("run", BUSES, "--set", "pace=live", "--set", "seconds=600", *places(work))
    assert app([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["batches"] == len(read_reports(files)) >= 2
    assert document["rows"]["rows_in"] == document["rows"]["released"] + document["rows"]["held"]
    assert not spark.streams.active


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say where its results and its state go, like --sink parquet:out/results"),
        (("--sink", "console"), "--checkpoint out/checkpoint"),
        (("--sink", "paper", "--checkpoint", "c"), "or console; got 'paper'"),
        (("--sink", "parquet:", "--checkpoint", "c"), "or console; got 'parquet:'"),
        (("--sink", "console", "--json"), "--json prints one document and nothing else"),
    ],
)
def test_a_stream_without_its_terms_is_refused(
    spark: SparkSession, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(lx.ConfigError) as refused:
        app(["run", BUSES, *words])
    assert said in str(refused.value)


def test_ctrl_c_elsewhere_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with plain_interrupts():
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is before
