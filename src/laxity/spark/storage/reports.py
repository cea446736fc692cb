"""Reports as JSON lines beside the checkpoint.

Files that can only be written whole (object stores know no append) are kept short: a hundred
reports each, the newest hundred files. Anyone may read them while the query runs.
"""

from laxity.core.report import Report
from laxity.spark.storage.files import Files

PER_FILE = 100
KEEP_FILES = 100


class ReportLog:
    """Appends reports; a report that is already there is not written again."""

    def __init__(self, files: Files) -> None:
        self._files = files
        firsts = _firsts(files)
        self._first = firsts[-1] if firsts else None
        self._open = [] if self._first is None else _read(files, self._first)

    def append(self, report: Report) -> None:
        """Add one report at the end."""
        if self._open and report.batch_id <= self._open[-1].batch_id:
            return
        if self._first is None or len(self._open) >= PER_FILE:
            self._first, self._open = report.batch_id, []
            for old in _firsts(self._files)[: -KEEP_FILES + 1]:
                self._files.delete(_name(old))
        self._open.append(report)
        lines = "".join(f"{one.model_dump_json()}\n" for one in self._open)
        self._files.write(_name(self._first), lines.encode())


def read_reports(files: Files, last: int | None = None) -> list[Report]:
    """The reports of a checkpoint, oldest first; only the newest `last` if given."""
    found: list[Report] = []
    for first in reversed(_firsts(files)):
        found = _read(files, first) + found
        if last is not None and len(found) >= last:
            break
    return found if last is None else found[-last:]


def _firsts(files: Files) -> list[int]:
    return sorted(int(name.removesuffix(".jsonl")) for name in files.names("reports"))


def _name(first: int) -> str:
    return f"reports/{first}.jsonl"


def _read(files: Files, first: int) -> list[Report]:
    lines = (files.read(_name(first)) or b"").splitlines()
    return [Report.model_validate_json(line) for line in lines]
