"""A folder of the user's own, for what is made once and used again: a script, an archive, traces.

It is `$XDG_CACHE_HOME/laxity`, else `~/.cache/laxity`; without a home that can be written to, one
for this process and those it starts, gone when it ends. What lies there runs or is read as the
user's own, so it is refused unless it is: no link, owned by the user, and nobody else's to write.
"""

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laxity.errors import EngineError

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
HOME = "XDG_CACHE_HOME"


def cache_folder(*parts: str) -> Path:
    """The folder, or one inside it: made if there is none, and the user's own."""
    folder = _root()
    _make(folder)
    for part in parts:
        folder = folder / part
        _make(folder)
    return folder


def cached_file(folder: Path, name: str, content: bytes, mode: int = 0o600) -> Path:
    """A file of this content in a folder of the user's own; written only if it is not there."""
    file = folder / name
    if found(file) and file.read_bytes() == content and stat.S_IMODE(file.stat().st_mode) == mode:
        return file
    with replacing(file) as draft:
        draft.write_bytes(content)
        draft.chmod(mode)
    return file


def found(file: Path) -> bool:
    """Whether there is such a file; one that is not the user's own is refused."""
    if not os.path.lexists(file):
        return False
    if fault := _fault(file, stat.S_IFREG):
        raise EngineError(f"{file} {fault}, so somebody else may have put it there: remove it")
    return True


def is_own(file: Path) -> bool:
    """Whether a file and its folder are there and the user's own."""
    try:
        return not (_fault(file, stat.S_IFREG) or _fault(file.parent, stat.S_IFDIR))
    except OSError:
        return False


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A draft that takes the file's place, whole, or not at all if writing it fails."""
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".draft")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _root() -> Path:
    chosen = os.environ.get(HOME, "")
    if Path(chosen).is_absolute():
        return Path(chosen) / "laxity"
    try:
        folder = Path.home() / ".cache" / "laxity"
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.path.lexists(folder) or os.access(folder.parent, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # no home, or one that cannot be written to
        pass
    return _of_this_process() / "laxity"


def _of_this_process() -> Path:
    """A cache home that ends with this process; those it starts are told of it."""
    home, owner = tempfile.mkdtemp(prefix="laxity-"), os.getpid()
    os.environ[HOME] = home

    def remove() -> None:
        if os.getpid() == owner:  # and not a copy of it
            shutil.rmtree(home, ignore_errors=True)

    atexit.register(remove)
    return Path(home)


def _make(folder: Path) -> None:
    cure = f"remove it, or point {HOME} to a folder of your own"
    try:
        if not os.path.lexists(folder):
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise EngineError(
            f"{folder} cannot be made ({error.strerror}): point {HOME} to a folder of your own"
        ) from error
    if fault := _fault(folder, stat.S_IFDIR) or _fault_above(folder):
        raise EngineError(f"{folder} {fault}, so what lies there may be somebody else's: {cure}")


def _fault(path: Path, kind: int) -> str | None:
    """What makes a file or folder not the user's own."""
    about = path.lstat()
    if stat.S_IFMT(about.st_mode) != kind:
        return "is a link" if path.is_symlink() else "is not what it should be"
    if about.st_uid != os.getuid():
        return f"belongs to user {about.st_uid} and not to {os.getuid()}"
    if about.st_mode & OTHERS_WRITE:
        return f"can be written by other users (mode {stat.S_IMODE(about.st_mode):o})"
    return None


def _fault_above(folder: Path) -> str | None:
    """Whether somebody else could put another folder in its place."""
    mode = folder.parent.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return f"can be replaced by other users (mode {stat.S_IMODE(mode):o} of {folder.parent})"
    return None
