import json
from pathlib import Path

import pytest

from laxity.errors import ConfigError, StateError
from laxity.paper import (
    FIGURES,
    ssg_fig4,
    ssg_fig8,
    ssg_fig9,
    ssg_fig12,
    ssg_fig13,
    ssg_table1,
    tintin_fig5,
    tintin_table3,
)
from laxity.paper.figure import Figure, figure, reproduce
from laxity.paper.result import Claim, Result, read_result

MODULES: dict[str, Figure] = {
    "ssg-fig4": ssg_fig4,
    "ssg-fig8": ssg_fig8,
    "ssg-fig9": ssg_fig9,
    "ssg-table1": ssg_table1,
    "ssg-fig12": ssg_fig12,
    "ssg-fig13": ssg_fig13,
    "tintin-table3": tintin_table3,
    "tintin-fig5": tintin_fig5,
}


def result(*, holds: bool = True) -> Result:
    claim = Claim(claim="it grows", paper="a lot", ours="2 times", holds=holds)
    return Result(
        id="ssg-fig9",
        scale="quick",
        seed=3,
        versions={"python": "3.11"},
        config={"nodes": [1]},
        rows=[{"engine": "sim", "nodes": 1, "share": 0.5, "limit": None}],
        claims=[claim],
    )


def test_every_figure_of_the_list_is_a_module_that_fits() -> None:
    for name in FIGURES:
        assert figure(name) is MODULES[name]
        assert set(MODULES[name].SCALES) == {"quick", "full"}


def test_the_document_has_the_five_keys_and_no_other() -> None:
    document = json.loads(result().document())
    assert document == {
        "id": "ssg-fig9",
        "scale": "quick",
        "seed": 3,
        "rows": [{"engine": "sim", "nodes": 1, "share": 0.5, "limit": None}],
        "claims": [{"claim": "it grows", "paper": "a lot", "ours": "2 times", "holds": True}],
    }


def test_a_saved_result_comes_back_the_same(work: Path) -> None:
    path = result().save(work / "new")
    assert path == work / "new" / "ssg-fig9.json"
    assert read_result(path) == result()
    assert {"versions", "config"} < set(json.loads(path.read_text()))


def test_a_result_holds_only_if_every_claim_does() -> None:
    assert result().hold
    assert not result(holds=False).hold


def test_a_number_that_is_none_is_null_in_the_document() -> None:
    odd = result().model_copy(update={"rows": [{"x": float("nan")}]})
    assert json.loads(odd.document())["rows"] == [{"x": None}]


def test_a_file_that_is_no_result_is_refused_by_name(work: Path) -> None:
    (work / "x.json").write_text("{}")
    for name in ("x.json", "nowhere.json"):
        with pytest.raises(StateError, match=f"{name} is not a result"):
            read_result(work / name)


def test_an_unknown_id_is_answered_with_the_ids() -> None:
    with pytest.raises(ConfigError, match="no figure 'fig1'; there are ssg-fig4, ssg-fig8"):
        figure("fig1")


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match="seed must be ≥ 0, got -1"):
        reproduce("ssg-fig9", "quick", -1)
