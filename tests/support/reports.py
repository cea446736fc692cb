"""Reports of batches that never were."""

from typing import Any

from laxity.core.ledger import Fates, Ledger
from laxity.core.progress import SourceState
from laxity.core.report import Latency, Promise, Report

MERGE = {
    "slack_s": 1.5,
    "oldest_late_us": None,
    "ready": 1000,
    "slack": 20,
    "late": 3,
    "held": 4,
}
JOIN = {"compared": 7, "missed": 5, "exact": True}


def report(stages: dict[str, Any] | None = None, **said: Any) -> Report:
    """A report of one row from two sources, with what else is said."""
    return Report.model_validate(
        {
            "pipeline": "p",
            "batch_id": 3,
            "started_us": 0,
            "emitted_us": 9,
            "rows": Fates(rows_in=1, released=1),
            "ledger": Ledger(rows_in=1, released=1),
            "n_results": 1,
            "latency": Latency(p50_s=1, p99_s=2, max_s=3),
            "sources": {
                "bus": SourceState(heard_us=0, idle=True),
                "scats": SourceState(heard_us=0),
            },
            "decisions": (),
            "stages": stages or {},
            "phases_s": {"intake": 1.0, "output": 0.5},
            "promises": (),
        }
        | said
    )


def promised(seen: float | None, stages: dict[str, Any] | None = None) -> Report:
    """A report with a deadline of 3 s, and what was seen."""
    return report(stages, promises=(Promise(name="deadline", bound=3.0, seen=seen, unit="s"),))
