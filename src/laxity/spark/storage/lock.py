"""One process at a time on a checkpoint.

The owner renews a small file while it lives. A newcomer is refused while the owner is alive, waits
a little for the Java half of an owner whose Python half has died, and takes over from the dead. If
two owners ever meet all the same (a machine that slept past its lease), the older one looks at the
lock before it changes anything (`owned.py`), finds it another's, and stops without committing.

No file system makes a check and a change in one step. So this much remains: an owner that falls
asleep between the two, which are a fraction of a millisecond apart, and one that falls asleep in
the middle of a Spark job, whose tasks may still add files to the folder they write when it wakes.
"""

import os
import socket
import threading
import time
import uuid
from pathlib import Path

from pydantic import BaseModel

from laxity.errors import StateError
from laxity.spark.rows.wall import now_us
from laxity.spark.storage.files import Files

NAME = "lock.json"
RENEW_S = 5.0
LEASE_US = 30_000_000
PATIENCE_S = 20.0


class Owner(BaseModel):
    """Who holds a checkpoint, and when it last said so."""

    token: str
    host: str
    python_pid: int
    java_pid: int
    renewed_us: int

    def lives(self, at_us: int) -> bool:
        """Whether the owner may still write: its lease runs and its processes are there."""
        here = self.host == socket.gethostname()
        gone = here and not _runs(self.python_pid) and not _runs(self.java_pid)
        return at_us - self.renewed_us < LEASE_US and not gone


def _runs(pid: int) -> bool:
    """Whether a process lives; one that is dead but not yet buried by its parent does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except OSError:  # another user's, or a system without /proc
        return True


def owner_of(files: Files) -> Owner | None:
    """Who holds the checkpoint, if anybody."""
    content = files.read(NAME)
    return Owner.model_validate_json(content) if content else None


class Lock:
    """Holds a checkpoint from `Lock(...)` to `release()`."""

    def __init__(self, files: Files, java_pid: int) -> None:
        self._files = files
        self._stop = threading.Event()
        self._me = Owner(
            token=uuid.uuid4().hex,
            host=socket.gethostname(),
            python_pid=os.getpid(),
            java_pid=java_pid,
            renewed_us=now_us(),
        )
        self._wait_for_the_dying()
        self._renew()
        self.check()
        self._keeper = threading.Thread(target=self._keep, name="laxity-lock", daemon=True)
        self._keeper.start()

    def _wait_for_the_dying(self) -> None:
        """Refuse while another process owns the checkpoint; outwait one that is going down."""
        until = time.monotonic() + PATIENCE_S
        while (owner := owner_of(self._files)) and owner.lives(now_us()):
            half_dead = owner.host == self._me.host and not _runs(owner.python_pid)
            if not half_dead or time.monotonic() > until:
                raise StateError(
                    f"checkpoint {self._files.uri} is in use by process {owner.python_pid} on "
                    f"{owner.host}: stop that query first, or give this one a checkpoint of its own"
                )
            time.sleep(0.1)

    def _keep(self) -> None:
        while not self._stop.wait(RENEW_S) and self._is_mine():
            self._renew()

    def _renew(self) -> None:
        self._me = self._me.model_copy(update={"renewed_us": now_us()})
        self._files.write(NAME, self._me.model_dump_json().encode())

    def _is_mine(self) -> bool:
        owner = owner_of(self._files)
        return owner is not None and owner.token == self._me.token

    def check(self) -> None:
        """Raise unless the checkpoint is still ours; called right before every change."""
        if not self._is_mine():
            owner = owner_of(self._files)
            who = f"process {owner.python_pid} on {owner.host}" if owner else "nobody"
            raise StateError(
                f"checkpoint {self._files.uri} now belongs to {who}: "
                "this query stops without committing, the other one carries on"
            )

    def release(self) -> None:
        """Give the checkpoint back."""
        self._stop.set()
        self._keeper.join()
        if self._is_mine():
            self._files.delete(NAME)
