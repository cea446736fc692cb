import sys
from pathlib import Path
from typing import Any

import pytest

import laxity as lx
from laxity.cli.load import load, named, settings_of
from support import streams

HERE = "support.streams"


def test_a_setting_is_what_its_annotation_or_default_says() -> None:
    texts = ["whole=7", "unsaid=2", "path=a/b", "rule=2s", "often=daily", "more=a=b"]
    with pytest.raises(lx.ConfigError, match="must give a laxity.Stream.*; got int"):
        load(f"{HERE}:settled", settings_of(texts))
    assert streams.seen == {
        **{"whole": 7, "unsaid": 2.0, "path": Path("a/b")},
        **{"rule": "2s", "often": "daily", "more": "a=b"},
    }


@pytest.mark.parametrize(
    ("target", "texts", "said"),
    [
        ("streams", [], "MODULE:NAME, like my_module:stream; got 'streams'"),
        (":buses", [], "MODULE:NAME"),
        ("no_such_module:x", [], "No module named 'no_such_module'; modules are looked for in"),
        (f"{HERE}:cars", [], "has no cars; it has buses, started, failing, settled"),
        (f"{HERE}:NUMBER", [], "must be a stream or a function, got int"),
        (f"{HERE}:buses", ["speed=3"], "has no setting speed; it has seconds, pace"),
        (f"{HERE}:buses", ["spark=3"], "has no setting spark"),
        (f"{HERE}:buses", ["seconds=soon"], "--set seconds=soon: Input should be a valid integer"),
        (f"{HERE}:buses", ["pace=slow"], "--set pace=slow: Input should be 'flood' or 'live'"),
        (f"{HERE}:settled", [], "needs --set whole="),
        (f"{HERE}:buses", ["seconds"], "--set takes NAME=VALUE, got 'seconds'"),
        (f"{HERE}:buses", ["=3"], "--set takes NAME=VALUE, got '=3'"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_the_reason(
    target: str, texts: list[str], said: str
) -> None:
    with pytest.raises(lx.ConfigError) as refused:
        load(target, settings_of(texts))
    assert said in str(refused.value)


@pytest.fixture
def mine(work: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module in the working folder."""
    (work / "my_own_pipeline.py").write_text("stream = 3")
    monkeypatch.chdir(work)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    yield "my_own_pipeline:stream"
    sys.modules.pop("my_own_pipeline")


def test_modules_of_the_working_folder_are_found(mine: str) -> None:
    assert named(mine) == 3


@pytest.mark.spark
def test_a_stream_may_stand_in_the_module_itself(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = streams.buses(spark)
    monkeypatch.setattr(streams, "ready", stream, raising=False)
    assert load(f"{HERE}:ready", {}) is stream
    with pytest.raises(lx.ConfigError, match="is a stream and takes no settings, got seconds"):
        load(f"{HERE}:ready", {"seconds": "3"})
