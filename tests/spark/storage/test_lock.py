import os
import subprocess
import sys
from pathlib import Path

import pytest

from laxity.errors import StateError
from laxity.spark.rows.wall import now_us
from laxity.spark.storage import lock
from laxity.spark.storage.files import LocalFiles
from laxity.spark.storage.lock import Lock, Owner, owner_of


@pytest.fixture
def files(work: Path) -> LocalFiles:
    return LocalFiles(str(work))


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def leave(files: LocalFiles, **changes: object) -> None:
    """The lock file another process would have left."""
    owner = Owner(
        token="other", host=os.uname().nodename, python_pid=os.getpid(), java_pid=os.getpid(),
        renewed_us=now_us(),
    )  # fmt: skip
    files.write(lock.NAME, owner.model_copy(update=changes).model_dump_json().encode())


def test_a_second_owner_is_refused_and_told_who_has_it(files: LocalFiles) -> None:
    first = Lock(files, java_pid=os.getpid())
    with pytest.raises(StateError, match=rf"in use by process {os.getpid()} on .* stop that query"):
        Lock(files, java_pid=os.getpid())
    first.check()
    first.release()
    Lock(files, java_pid=os.getpid()).release()
    assert owner_of(files) is None


def test_the_dead_are_succeeded(files: LocalFiles) -> None:
    gone = dead_pid()
    leave(files, python_pid=gone, java_pid=gone)
    Lock(files, java_pid=os.getpid()).release()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_dead_that_nobody_buried_are_succeeded(files: LocalFiles) -> None:
    unburied = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, unburied.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays a zombie
    leave(files, python_pid=unburied.pid, java_pid=unburied.pid)
    Lock(files, java_pid=os.getpid()).release()
    unburied.wait()


def test_a_dying_java_is_waited_for(files: LocalFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(files, python_pid=dead_pid())
    monkeypatch.setattr(lock, "PATIENCE_S", 0.3)
    with pytest.raises(StateError, match="in use"):
        Lock(files, java_pid=os.getpid())


def test_an_expired_lease_is_succeeded_on_any_host(files: LocalFiles) -> None:
    leave(files, host="elsewhere", renewed_us=now_us() - lock.LEASE_US)
    Lock(files, java_pid=os.getpid()).release()


def test_another_host_is_believed_while_its_lease_runs(files: LocalFiles) -> None:
    leave(files, host="elsewhere", python_pid=dead_pid(), java_pid=dead_pid())
    with pytest.raises(StateError, match="elsewhere"):
        Lock(files, java_pid=os.getpid())


def test_an_owner_that_was_succeeded_stops_and_leaves_the_new_lock(files: LocalFiles) -> None:
    mine = Lock(files, java_pid=os.getpid())
    leave(files, host="elsewhere")
    with pytest.raises(StateError, match="now belongs to process .* on elsewhere"):
        mine.check()
    mine.release()
    assert owner_of(files) is not None


def test_the_lease_is_renewed(files: LocalFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "RENEW_S", 0.05)
    mine = Lock(files, java_pid=os.getpid())
    before = owner_of(files)
    assert before is not None
    until = now_us() + 5_000_000
    while (owner := owner_of(files)) == before and now_us() < until:
        pass
    mine.release()
    assert owner is not None
    assert owner.renewed_us > before.renewed_us
