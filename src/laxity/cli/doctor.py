"""`laxity doctor`: what is there, what is missing, and the cure."""

import json
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from laxity.cache_folder import cache_folder
from laxity.errors import EngineError
from laxity.spark.api.java import find_java
from laxity.spark.jvm.spark_version import NEWEST, OLDEST, lacking, spark_version

NEED_MEMORY_GB = 2
NEED_DISK_GB = 1
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    what: str
    found: str
    ok: bool
    cure: str = ""


def doctor(*, as_json: Annotated[bool, Parameter(name="--json")] = False) -> int:
    """Look at Java, Python, Spark, memory, disk and ports; say what is missing and the cure.

    Parameters
    ----------
    as_json
        Print one JSON document instead of a table.
    """
    findings = [look() for look in LOOKS]
    if as_json:
        print(json.dumps({"ok": _well(findings), "findings": [asdict(one) for one in findings]}))
        return 0 if _well(findings) else 1
    table = Table()
    for name in ("", "what", "found", "cure"):
        table.add_column(name, overflow="fold")
    for one in findings:
        mark = "[green]✓[/]" if one.ok else "[red]✗[/]"
        table.add_row(mark, one.what, one.found, "" if one.ok else one.cure)
    Console().print(table)
    return 0 if _well(findings) else 1


def _well(findings: list[Finding]) -> bool:
    return all(one.ok for one in findings)


def _python() -> Finding:
    return Finding(
        "Python",
        f"{platform.python_version()} at {sys.executable}",
        sys.version_info >= OLDEST_PYTHON,
        "install Python 3.11 or newer",
    )


def _java() -> Finding:
    try:
        java = find_java()
    except EngineError as error:
        return Finding("Java", "none that will do", ok=False, cure=str(error))
    return Finding("Java", f"{java.version} by {java.found} at {java.program}", ok=True)


def _spark() -> Finding:
    found = _package("pyspark")()
    if not found.ok:
        return found
    number = spark_version(found.found)
    first, last = (".".join(map(str, version)) for version in (OLDEST, NEWEST))
    return Finding(
        "pyspark",
        "; ".join([found.found, *lacking(number)]),
        OLDEST <= number <= NEWEST,
        f"Laxity runs on Spark {first} to {last}: pip install 'pyspark[sql]=={last}.*'",
    )


def _package(name: str) -> Callable[[], Finding]:
    def look() -> Finding:
        try:
            return Finding(name, version(name), ok=True)
        except PackageNotFoundError:
            return Finding(name, "not installed", ok=False, cure=f"pip install {name}")

    return look


def _memory() -> Finding:
    free_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") / 2**30
    return Finding(
        "memory",
        f"{free_gb:.1f} GB free",
        free_gb >= NEED_MEMORY_GB,
        f"Spark wants {NEED_MEMORY_GB} GB: free some, or laxity.session(memory='1g')",
    )


def _cache() -> Finding:
    try:
        return Finding("cache folder", str(cache_folder()), ok=True)
    except EngineError as error:
        return Finding("cache folder", "not yours alone", ok=False, cure=str(error))


def _disk() -> Finding:
    folder = tempfile.gettempdir()
    free_gb = shutil.disk_usage(folder).free / 2**30
    return Finding(
        "disk",
        f"{free_gb:.1f} GB free in {folder}",
        free_gb >= NEED_DISK_GB,
        f"free {NEED_DISK_GB} GB, or point TMPDIR and spark.local.dir elsewhere",
    )


def _ports() -> Finding:
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return Finding("ports", "loopback ports can be opened", ok=True)
    except OSError as error:
        return Finding("ports", str(error), ok=False, cure="allow sockets on 127.0.0.1")


LOOKS: list[Callable[[], Finding]] = [
    _python,
    _java,
    _spark,
    _package("pyarrow"),
    _package("pandas"),
    _memory,
    _cache,
    _disk,
    _ports,
]
