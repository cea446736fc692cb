"""The registry, the code and the pages know the same systems."""

import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import laxity as lx
from laxity.cli.demo import demo
from laxity.registry import SYSTEMS, System, register, resolve, system_of, systems
from laxity.spark.api import stream
from laxity.spark.engine.draft import Draft
from laxity.spark.engine.stage import Stage

ROOT = Path(__file__).parent.parent

every_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)


@every_system
def test_every_place_of_a_system_is_there(system: System) -> None:
    for place in (system.adds, system.config, system.report):
        assert place is None or callable(resolve(place))
    assert Stage in resolve(system.stage).__mro__
    for file in (system.page, system.example):
        assert file is None or (ROOT / file).is_file()


@every_system
def test_a_stage_is_called_as_its_system(system: System) -> None:
    stage = resolve(system.stage)
    assert getattr(stage, "name", None) == system.name or system.name == "apply"


@every_system
def test_readme_and_pipelines_page_lead_to_the_system(system: System) -> None:
    readme, pipelines = ((ROOT / name).read_text() for name in ("README.md", "docs/pipeline.md"))
    assert system.adds is not None
    assert system.page is not None
    assert f"]({system.page})" in readme
    method = system.adds.replace(":", ".").split(".")[-1]
    rows = [line for line in pipelines.splitlines() if re.match(rf"\| `[a-z.]*{method}\(", line)]
    assert len(rows) == 1
    assert Path(system.page).name in rows[0] or system.page == "docs/pipeline.md"


def test_what_adds_a_stage_is_in_the_registry_and_the_other_way_round() -> None:
    own = {name for name, what in vars(Draft).items() if callable(what)}
    own |= {name for name, what in vars(lx.Stream).items() if _is_of(what, stream)}
    adding = {what for name, what in vars(lx.Stream).items() if callable(what) and name not in own}
    registered = {resolve(one.adds) for one in SYSTEMS if one.adds}
    assert adding == registered - {lx.merge}


def _is_of(what: object, module: object) -> bool:
    return getattr(what, "__module__", None) == getattr(module, "__name__", "")


def test_a_system_from_outside_adds_a_method_to_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    from support import echo

    seen: list[object] = []
    monkeypatch.setattr(echo, "echo", seen.append)
    resolve.cache_clear()
    made = object.__new__(lx.Stream)
    made.echo()
    assert seen == [made]
    with pytest.raises(AttributeError, match="a stream has no 'nothing'"):
        _ = made.nothing


def test_every_demo_is_one_of_a_system_and_the_other_way_round() -> None:
    assert set(get_args(get_type_hints(demo)["which"])) == {one.demo for one in SYSTEMS} - {None}


def test_a_system_from_outside_is_found_by_its_stages_labels() -> None:
    import support.echo  # noqa: F401  # registers it

    found = system_of("land-echo-2")
    assert found is not None
    assert found.name == "echo"
    assert found in systems()


def test_of_two_names_that_fit_the_longer_is_meant() -> None:
    register(System("slow-merge", stage="elsewhere:SlowMerge"))
    found = system_of("land-slow-merge")
    assert found is not None
    assert found.name == "slow-merge"


def test_a_name_can_be_given_once() -> None:
    register(SYSTEMS[0])
    with pytest.raises(lx.ConfigError, match="another name than mine:Merge"):
        register(System("merge", stage="mine:Merge"))
