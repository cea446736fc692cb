import pytest

import laxity as lx
from laxity.core.stage_report import StageReport, UnknownReport
from laxity.registry import SYSTEMS
from support.reports import report


def test_every_number_says_how_it_is_shown() -> None:
    with pytest.raises(lx.ConfigError, match=r"BareReport\.held does not say what it is"):

        class BareReport(StageReport):
            held: int = 0


@pytest.mark.parametrize("system", [one for one in SYSTEMS if one.report], ids=lambda s: s.name)
def test_every_system_says_what_its_numbers_mean_and_which_few_a_table_shows(
    system: object,
) -> None:
    model = system.report_model  # type: ignore[attr-defined]
    told = model.model_construct(**dict.fromkeys(model.model_fields, 0)).shown_fields()
    assert list(told) == list(model.model_fields)
    assert all(said.about for said in told.values())
    assert all(
        said.unit in ("s", "us") for said in told.values() if said.kind in ("duration", "time")
    )
    assert 1 <= sum(said.column for said in told.values()) <= 4


def test_the_schema_of_a_model_has_units_and_labels_too() -> None:
    from laxity.core.merge import MergeReport

    held = MergeReport.model_json_schema()["properties"]["held"]
    assert (held["title"], held["unit"], held["kind"]) == ("held", "rows", "gauge")


def test_of_an_unknown_stage_the_numbers_are_shown_the_first_as_columns() -> None:
    told = UnknownReport.model_validate(
        {"why": "so", "a": 1, "b": 2.5, "sharp": True, "d_s": None, "last": 4}
    ).shown_fields()
    assert {name: said.kind for name, said in told.items()} == {
        **{"a": "gauge", "b": "gauge"},
        **{"sharp": "flag", "last": "gauge"},
    }
    assert [name for name, said in told.items() if said.column] == ["a", "b", "sharp"]


def test_a_report_written_before_a_field_was_added_has_its_default() -> None:
    import support.echo  # noqa: F401  # registers it

    told = report({"land-echo": {"echoed": 2, "echo_us": 3}}).stages["land-echo"]
    assert type(told).__name__ == "EchoReport"
    assert told["again"] == 0
