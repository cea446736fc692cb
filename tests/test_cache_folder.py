"""What lies in the cache folder is the user's own, or is refused."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from laxity.cache_folder import cache_folder, cached_file, found, is_own, replacing
from laxity.errors import EngineError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_where_the_user_says_or_in_their_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder() == home / "cache" / "laxity"
    for nowhere in ("", "not/absolute"):
        monkeypatch.setenv("XDG_CACHE_HOME", nowhere)
        assert cache_folder("a", "b") == home / ".cache" / "laxity" / "a" / "b"
    assert {mode(path) for path in (home / ".cache").rglob("*")} == {0o700}
    assert mode(home / ".cache") == 0o700


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize("where", [no_home, lambda: Path("/proc/nowhere")])
def test_without_a_home_it_is_this_process_own_and_goes_with_it(
    where: Callable[[], Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_exit: list[Callable[[], None]] = []
    monkeypatch.setattr("atexit.register", at_exit.append)
    monkeypatch.setattr("tempfile.tempdir", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", where)
    folder = cache_folder()
    assert folder.parent.parent == home
    assert cache_folder() == folder  # so it is for those that this process starts
    assert mode(folder) == mode(folder.parent) == 0o700
    (ending,) = at_exit
    with monkeypatch.context() as copy:
        copy.setattr("os.getpid", lambda: -1)
        ending()
    assert folder.exists()
    ending()
    assert not folder.parent.exists()


def others_may_write(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o770)


def a_link(folder: Path) -> None:
    theirs = folder.parent.parent / "theirs"
    theirs.mkdir(parents=True)
    folder.parent.mkdir()
    folder.symlink_to(theirs)


def a_link_to_nothing(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.symlink_to(folder.parent / "nothing")


def a_file(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("")


def replaceable(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o777)


@pytest.mark.parametrize(
    ("placed", "fault"),
    [
        (others_may_write, r"can be written by other users \(mode 770\)"),
        (a_link, "is a link"),
        (a_link_to_nothing, "is a link"),
        (a_file, "is not what it should be"),
        (replaceable, r"can be replaced by other users \(mode 777 of .*cache\)"),
    ],
)
@pytest.mark.parametrize("parts", [(), ("java", "bin")])
def test_a_folder_that_is_not_the_users_own_is_refused(
    home: Path, placed: Callable[[Path], None], fault: str, parts: tuple[str, ...]
) -> None:
    placed(home / "cache" / "laxity")
    with pytest.raises(EngineError, match=rf"cache/laxity {fault}, so .*XDG_CACHE_HOME to a"):
        cache_folder(*parts)


def test_a_folder_within_is_looked_at_too(home: Path) -> None:
    cache_folder("java").chmod(0o777)
    with pytest.raises(EngineError, match=r"laxity/java can be written by other users"):
        cache_folder("java", "bin")


def test_what_belongs_to_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache_folder()
    file = cached_file(folder, "x", b"1")
    assert found(file)
    assert is_own(file)
    me = os.getuid()
    monkeypatch.setattr("os.getuid", lambda: me + 1)
    fault = rf"belongs to user {me} and not to {me + 1}"
    with pytest.raises(EngineError, match=fault):
        cache_folder()
    with pytest.raises(EngineError, match=fault):
        cached_file(folder, "x", b"1")
    assert not is_own(file)


def test_a_folder_that_cannot_be_made_is_refused_with_the_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    with pytest.raises(EngineError, match=r"/proc/nowhere/laxity cannot be made .*to a folder of"):
        cache_folder()


def test_a_file_of_somebody_else_is_refused_and_stays_as_it_is(home: Path) -> None:
    file = cached_file(cache_folder(), "x", b"1")
    file.chmod(0o622)
    with pytest.raises(EngineError, match=r"x can be written by other users .*: remove it"):
        cached_file(cache_folder(), "x", b"2")
    assert file.read_bytes() == b"1"
    assert not is_own(file)
    file.unlink()
    file.symlink_to(home / "theirs")
    with pytest.raises(EngineError, match="x is a link"):
        cached_file(cache_folder(), "x", b"2")
    assert not (home / "theirs").exists()


def test_a_file_is_written_once_and_again_if_it_is_another() -> None:
    folder = cache_folder()
    first = cached_file(folder, "x", b"1", 0o700).stat()
    assert cached_file(folder, "x", b"1", 0o700).stat() == first
    assert cached_file(folder, "x", b"2", 0o700).read_bytes() == b"2"
    assert mode(folder / "x") == 0o700
    (folder / "x").chmod(0o600)
    assert mode(cached_file(folder, "x", b"2", 0o700)) == 0o700


def test_a_file_that_could_not_be_written_leaves_the_old_one_and_no_draft() -> None:
    file = cached_file(cache_folder(), "x", b"1")

    def half() -> None:
        with replacing(file) as draft:
            draft.write_bytes(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert file.read_bytes() == b"1"
    assert list(file.parent.iterdir()) == [file]


def make(content: bytes) -> tuple[str, bytes]:
    file = cached_file(cache_folder("a", "b"), "x", content)
    return str(file), file.read_bytes()


MAKE = """
from laxity.cache_folder import cache_folder, cached_file
for n in range(100):
    assert cached_file(cache_folder("a", str(n)), "x", b"same").read_bytes() == b"same"
"""


def test_many_processes_that_make_the_same_at_once_all_have_it() -> None:
    processes = [subprocess.Popen([sys.executable, "-c", MAKE]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    files = [file for file in cache_folder("a").rglob("*") if file.is_file()]
    assert [file.name for file in files] == ["x"] * 100


def test_who_makes_another_at_the_same_time_never_sees_half_of_it() -> None:
    contents = [bytes([n]) * 50_000 for n in range(4)] * 50
    with ThreadPoolExecutor(8) as threads:
        made = threads.map(make, contents)
    assert {content for _, content in made} <= set(contents)
    assert [file.name for file in cache_folder("a", "b").iterdir()] == ["x"]
