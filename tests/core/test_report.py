from laxity.core.ledger import Fates, Ledger
from laxity.core.progress import SourceState
from laxity.core.report import Latency, Promise, Report


def report(seen: float | None) -> Report:
    return Report(
        pipeline="p",
        batch_id=3,
        started_us=0,
        emitted_us=9,
        rows=Fates(rows_in=1, released=1),
        ledger=Ledger(rows_in=1, released=1),
        n_results=1,
        latency=Latency(p50_s=1, p99_s=2, max_s=3),
        sources={"bus": SourceState(heard_us=0, idle=True), "scats": SourceState(heard_us=0)},
        decisions=(),
        phases_s={"intake": 1.0, "output": 0.5},
        promises=(Promise(name="deadline", bound=3.0, seen=seen, unit="s"),),
    )


def test_a_report_reads_back_from_its_json() -> None:
    one = report(seen=2.0)
    assert Report.model_validate_json(one.model_dump_json()) == one


def test_the_bound_itself_still_keeps_the_promise() -> None:
    assert report(seen=3.0).kept
    assert not report(seen=3.0001).kept
    assert report(seen=None).kept


def test_it_names_the_idle_and_adds_up_the_phases() -> None:
    assert report(seen=None).idle == ["bus"]
    assert report(seen=None).duration_s == 1.5
