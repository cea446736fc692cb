import stat
import subprocess
from pathlib import Path

import pytest

from laxity.cache_folder import cache_folder
from laxity.errors import EngineError
from laxity.spark.api import java


def fake_java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho \'openjdk version "{version}"\' >&2\necho "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    return program


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, work: Path) -> None:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)


def test_without_any_the_cure_is_named() -> None:
    with pytest.raises(EngineError, match=r"Java 17 or newer \(none was found\).*laxity\[java\]"):
        java.find_java()


def test_one_that_is_too_old_is_passed_over(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(work / "old", "1.8.0_292").parent.parent))
    with pytest.raises(EngineError, match="JAVA_HOME: 8"):
        java.find_java()
    new = fake_java(work / "new", "21.0.1")
    monkeypatch.setattr("shutil.which", lambda _: str(new))
    assert java.find_java() == java.Java(new, 21, "PATH")


def test_one_that_does_not_run_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(EngineError, match="JAVA_HOME: does not run"):
        java.find_java()


def test_the_script_drops_the_one_argument_and_keeps_the_rest(work: Path) -> None:
    home = java.Java(fake_java(work / "jdk", "21"), 21, "PATH").home()
    command = [f"{home}/bin/java", "-a", "--add-modules=jdk.incubator.vector", "b c"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout == "-a b c\n"


def test_the_script_lies_where_only_the_user_can_write(work: Path) -> None:
    home = java.Java(fake_java(work / "jdk", "21"), 21, "PATH").home()
    assert home.parent == cache_folder()
    for path in (home.parent, home, home / "bin", home / "bin" / "java"):
        assert path.stat().st_mode & 0o777 == 0o700


def test_a_script_that_somebody_else_placed_first_does_not_run(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache"))
    found = java.Java(fake_java(work / "jdk", "21"), 21, "PATH")
    script = found.home() / "bin" / "java"
    text = script.read_text()
    script.unlink()
    script.symlink_to(fake_java(work / "theirs", "21"))
    with pytest.raises(EngineError, match="is a link, so somebody else may have put it there"):
        found.home()
    script.unlink()
    assert (found.home() / "bin" / "java").read_text() == text
