"""What only the owner of a checkpoint may change.

A machine may sleep past its lease at any moment, and another process take over and commit. Whoever
wakes up then must not clear, replace or trim what the other has written, whatever it was about to
do. So nothing gets at a checkpoint's files but through this, which looks at the lock right before
every change: one small file is read. What a sink has written is guarded alike (`OwnedSink`).
"""

from collections.abc import Callable

from laxity.spark.storage.files import Files


class OwnedFiles:
    """A folder that anyone may read; `check` raises if its owner is another by now."""

    def __init__(self, files: Files, check: Callable[[], None]) -> None:
        self._files = files
        self._check = check
        self.uri = files.uri

    def read(self, name: str) -> bytes | None:
        """The content, or None if there is no such file."""
        return self._files.read(name)

    def write(self, name: str, content: bytes) -> None:
        """Make the file hold this content, atomically, if the folder is still ours."""
        self._check()
        self._files.write(name, content)

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        return self._files.names(folder)

    def delete(self, name: str) -> None:
        """Remove a file or a whole folder, if all is still ours."""
        self._check()
        self._files.delete(name)

    def clear(self, folder: str) -> None:
        """Make sure that nothing is left in a folder, if it is still ours."""
        self._check()
        self._files.clear(folder)
