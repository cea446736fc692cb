import json

import pytest
from pydantic import ValidationError

from laxity.core.join import JoinReport
from laxity.core.merge import MergeReport
from laxity.core.report import Report
from laxity.core.stage_report import UnknownReport
from support.reports import JOIN, MERGE, promised, report


def again(one: Report) -> Report:
    return Report.model_validate_json(one.model_dump_json())


def test_a_report_reads_back_from_its_json() -> None:
    one = promised(seen=2.0)
    assert again(one) == one


def test_the_bound_itself_still_keeps_the_promise() -> None:
    assert promised(seen=3.0).kept
    assert not promised(seen=3.0001).kept
    assert promised(seen=None).kept


def test_it_names_the_idle_and_adds_up_the_phases() -> None:
    assert promised(seen=None).idle == ["bus"]
    assert promised(seen=None).duration_s == 1.5


def test_stages_are_in_json_what_they_told() -> None:
    told = {"land-merge": MERGE, "join": JOIN, "elsewhere": {"n": 1, "why": {"so": [None]}}}
    one = report(told)
    assert json.loads(one.model_dump_json())["stages"] == told
    assert list(one.model_dump(mode="json")["stages"]["land-merge"]) == list(MERGE)
    assert again(one) == one


def test_a_stage_is_read_as_the_report_of_its_system_by_any_label() -> None:
    stages = again(report({"merge": MERGE, "land-merge": MERGE, "land-join": JOIN})).stages
    assert [type(told) for told in stages.values()] == [MergeReport, MergeReport, JoinReport]


def test_a_stage_that_nobody_knows_is_read_as_it_is() -> None:
    told = again(report({"shred-2": {"bits": 8, "sharp": True, "how": "well"}})).stages["shred-2"]
    assert isinstance(told, UnknownReport)
    assert (told["bits"], told.get("nothing"), "how" in told) == (8, None, True)


def test_a_stage_is_read_like_a_dictionary() -> None:
    told = report({"merge": MERGE}).stages["merge"]
    assert told == MERGE
    assert (told["slack_s"], told.get("shed", 0), "late" in told, "shed" in told) == (
        *(1.5, 0),
        *(True, False),
    )
    assert dict(told.items()) == {**told} == MERGE
    assert len({told, MergeReport.model_validate(MERGE)}) == 1


def test_a_number_that_is_not_there_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="shed"):
        report({"merge": MERGE}).stages["merge"]["shed"]


def test_a_stage_cannot_tell_what_its_model_does_not_know() -> None:
    with pytest.raises(ValidationError, match="shed"):
        report({"merge": MERGE | {"shed": 1}})
