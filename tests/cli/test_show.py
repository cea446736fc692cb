"""Tables of reports: what is in them, and that a person can read them."""

from typing import Any

from rich.console import Console

import support.echo  # noqa: F401  # registers it
from laxity.cli.columns import lines
from laxity.cli.show import watch
from laxity.core.ledger import Fates
from laxity.core.report import Report
from support.reports import JOIN, MERGE, promised, report

WIDTH = 120


def shown(*reports: Report, width: int = WIDTH) -> str:
    console = Console(width=width, force_terminal=False, color_system=None)
    with console.capture() as captured:
        console.print(watch(reports, "town"))
    return captured.get()


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every table but the account's, line by line, heads included."""
    found: list[list[list[str]]] = []
    for line in text.splitlines()[1:]:
        if line.startswith("┏"):
            found.append([])
        elif line.startswith(("┃", "│")):
            found[-1].append(
                [cell.strip() for cell in line.strip("┃│").replace("│", "┃").split("┃")]
            )
    return found[1:]


def column(table: list[list[str]], stage: str, label: str) -> list[str]:
    """The cells of a stage's number; its name stands over the first of them."""
    above, heads, *rows = table
    n = heads.index(label, above.index(stage))
    return [row[n] for row in rows]


def test_one_merge_fits_beside_the_account() -> None:
    (table,) = tables(shown(report({"merge": MERGE, "join": JOIN})))
    assert column(table, "merge", "slack s") == ["1.50"]
    assert column(table, "merge", "early") == ["20"]
    assert column(table, "join", "missed") == ["5"]


def test_named_merges_are_shown_under_their_labels() -> None:
    stages = {"land-merge": MERGE, "land-join": JOIN, "merge": MERGE | {"late": 1234}}
    text = shown(report(stages), report(stages))
    found = tables(text)
    assert column(found[-1], "land-merge", "late") == ["3", "3"]
    assert column(found[-1], "merge", "late") == ["1,234", "1,234"]
    assert "…" not in text


def test_many_stages_go_into_tables_of_their_own_and_nothing_is_cut() -> None:
    stages: dict[str, Any] = {f"quarter{n}-merge": MERGE for n in range(8)}
    text = shown(report(stages))
    assert all(name in text for name in stages)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert len(tables(text)) > 2


def test_a_stage_from_outside_and_an_unknown_one_have_columns() -> None:
    stages = {
        "echo": {"echoed": 2000, "echo_us": 1_500_000},
        "shred": {"bits": 8, "how": "well", "sharp": True},
    }
    (table,) = tables(shown(report(stages)))
    assert column(table, "echo", "echoed") == ["2,000"]
    assert column(table, "echo", "echo s") == ["1.50"]
    assert column(table, "shred", "bits") == ["8"]
    assert column(table, "shred", "sharp") == ["yes"]


def test_a_stage_that_a_batch_does_not_know_is_a_dash() -> None:
    (table,) = tables(shown(report({"merge": MERGE}), report({"merge": MERGE, "join": JOIN})))
    assert column(table, "join", "missed") == ["–", "5"]
    (table,) = tables(shown(report({"merge": MERGE | {"slack_s": None}})))
    assert column(table, "merge", "slack s") == ["–"]


def test_rejected_rows_are_shown_if_there_are_any() -> None:
    rejected = Fates(rows_in=9, released=3, late_rejected=4, dead=2)
    (table,) = tables(shown(report(), report(rows=rejected)))
    above, heads, *rows = table
    assert above[heads.index("rejected")] == "late"
    assert [row[heads.index("rejected")] for row in rows] == ["0", "4"]
    assert [row[heads.index("dead")] for row in rows] == ["0", "2"]
    (table,) = tables(shown(report()))
    assert not {"rejected", "dead"} & set(table[0])


def test_in_a_narrow_terminal_the_stages_follow_below() -> None:
    found = tables(shown(promised(2.0, {"merge": MERGE, "join": JOIN}), width=80))
    assert [len(table) for table in found] == [2, 3]


def test_a_run_is_summed_up_in_a_line_for_each_stage() -> None:
    stages = {
        "land-merge": MERGE | {"oldest_late_us": 1_700_000_000_000_000},
        "shred": {"how": "x"},
    }
    assert lines([report(stages), report(stages)]) == [
        "land-merge: slack 1.50 s, oldest late 2023-11-14 22:13:20, in order 2,000, early 40, "
        "late 6, held 4"
    ]


def test_a_time_past_all_calendars_is_shown_in_seconds() -> None:
    far = report({"merge": MERGE | {"oldest_late_us": 10**18}})
    assert "oldest late 1,000,000,000,000 s" in lines([far])[0]


def test_without_a_batch_there_is_nothing_to_show() -> None:
    assert shown().strip() == "town · no batch yet"
