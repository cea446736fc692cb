import json
import subprocess
import sys
from pathlib import Path

import pytest

from laxity.cli import app
from laxity.paper import FIGURES, ssg_fig9
from laxity.paper.result import read_result
from laxity.paper.ssg_fig9 import Setup


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ssg_fig9.SCALES, "quick", Setup(seconds=5, nodes=(1, 2)))


def refused(*words: str) -> str:
    command = [sys.executable, "-m", "laxity", "paper", "run", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    return done.stderr + done.stdout


def test_list_names_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["paper", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in FIGURES)
    assert app(["paper", "list", "--json"]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)] == list(FIGURES)


def test_run_shows_rows_claims_and_where_the_files_went(
    capsys: pytest.CaptureFixture[str], work: Path
) -> None:
    assert app(["paper", "run", "ssg-fig9", "--out", str(work)]) == 0
    shown = capsys.readouterr().out
    assert "comparisons" in shown
    assert "✓" in shown
    for name in ("ssg-fig9.json", "ssg-fig9.png"):
        assert f"{work / name}" in shown
        assert (work / name).stat().st_size > 0


def test_json_is_the_one_document_on_standard_output(
    capsys: pytest.CaptureFixture[str], work: Path
) -> None:
    words = ["paper", "run", "ssg-fig9", "--json", "--seed", "3", "--out", str(work)]
    assert app(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"id", "scale", "seed", "rows", "claims"}
    assert (document["id"], document["scale"], document["seed"]) == ("ssg-fig9", "quick", 3)
    assert all(set(one) == {"claim", "paper", "ours", "holds"} for one in document["claims"])
    assert read_result(work / "ssg-fig9.json").rows == document["rows"]


def test_a_claim_that_does_not_hold_is_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, work: Path
) -> None:
    idle = Setup(seconds=5, nodes=(1, 2), compare_us=0)
    monkeypatch.setitem(ssg_fig9.SCALES, "quick", idle)
    assert app(["paper", "run", "ssg-fig9", "--out", str(work)]) == 1
    assert "✗" in capsys.readouterr().out


def test_bad_usage_is_two_and_says_what_there_is() -> None:
    assert all(name in refused("ssg-fig99") for name in FIGURES)
    assert "full" in refused("ssg-fig9", "--scale", "huge")
