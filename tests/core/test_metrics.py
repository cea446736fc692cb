import support.echo  # noqa: F401  # registers it
from laxity.core.metrics import Metric, metrics_of, totals
from support.reports import JOIN, MERGE, report


def test_a_named_merge_is_the_same_metric_under_another_label() -> None:
    found = list(metrics_of(report({"merge": MERGE, "land-merge": MERGE | {"held": 9}})))
    held = [one for one in found if one.name == "laxity_merge_held"]
    assert [(one.labels["stage"], one.value) for one in held] == [("merge", 4), ("land-merge", 9)]
    assert held[0] == Metric(
        name="laxity_merge_held",
        kind="gauge",
        unit="rows",
        value=4.0,
        labels={"pipeline": "p", "stage": "merge"},
        about="rows that wait",
    )


def test_what_there_is_not_is_no_metric() -> None:
    names = {one.name for one in metrics_of(report({"merge": MERGE | {"slack_s": None}}))}
    assert names == {f"laxity_merge_{name}" for name in ("ready", "slack", "late", "held")}


def test_systems_from_outside_and_unknown_ones_have_metrics_too() -> None:
    stages = {"echo": {"echoed": 2, "echo_us": 3}, "shred-2": {"bits": 8}}
    found = {one.name: one.value for one in metrics_of(report(stages))}
    assert found["laxity_echo_echoed"] == 2
    assert found["laxity_stage_bits"] == 8


def test_counters_add_up_flags_hold_throughout_and_the_rest_is_newest() -> None:
    first = report({"merge": MERGE, "join": JOIN | {"exact": False}})
    second = report({"merge": MERGE | {"held": 1, "slack_s": 2.0}, "join": JOIN, "x": {"n": 1}})
    assert totals([first, second]) == {
        "merge": MERGE | {"ready": 2000, "slack": 40, "late": 6, "held": 1, "slack_s": 2.0},
        "join": {"compared": 14, "missed": 10, "exact": False},
        "x": {"n": 1},
    }
