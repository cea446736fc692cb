"""Every system there is, as plain data: where its parts are, and what it is called.

A new system is one entry here, or one call of `register` in the package that brings it. Nothing is
imported before it is asked for: places are text, `"module:name"`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from laxity.errors import ConfigError


@dataclass(frozen=True)
class System:
    """One system, by the name its stage has in contracts, reports and checkpoints.

    `stage`: the stage's class. `adds`: the function of a stream that adds it, which
    is a method of `lx.Stream` by its name, or one that makes a stream. `config`: how it
    is set. `report`: the model of what it tells of a batch, None if it tells nothing. `page`,
    `example`: files of the repository. `demo`: the word behind `laxity demo`. None where there is
    none.
    """

    name: str
    stage: str
    adds: str | None = None
    config: str | None = None
    report: str | None = None
    page: str | None = None
    example: str | None = None
    demo: str | None = None

    @property
    def report_model(self) -> Any:
        """The model of what it tells of a batch; None if it tells nothing."""
        return None if self.report is None else resolve(self.report)


_SYSTEMS: dict[str, System] = {}


def register(system: System) -> None:
    """Add a system of your own; call it where its package is imported.

    The same system once more changes nothing; another one of that name is refused.
    """
    there = _SYSTEMS.setdefault(system.name, system)
    if there != system:
        raise ConfigError(
            f"system {system.name} is {there.stage} already; give yours "
            f"another name than {system.stage}"
        )


def systems() -> Iterator[System]:
    """All systems, in the order they were added."""
    return iter(tuple(_SYSTEMS.values()))


def system_of(label: str) -> System | None:
    """The system of a stage, by what the stage is called in a query; None if nobody knows it.

    A stage of a named stream has its name in front, and one of several a number behind.

    >>> [system_of(label).name for label in ("merge", "land-merge", "apply-2", "land-apply-2")]
    ['merge', 'merge', 'apply', 'apply']
    >>> system_of("submerge")
    """
    for name in (label, re.sub(r"-\d+$", "", label)):
        known = [one for one in _SYSTEMS if name == one or name.endswith(f"-{one}")]
        if known:
            return _SYSTEMS[max(known, key=len)]
    return None


@cache
def resolve(place: str) -> Any:
    """What lies at a place.

    >>> resolve("laxity.core.ledger:Ledger.check").__name__
    'check'
    """
    module, _, names = place.partition(":")
    found = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


SYSTEMS = (
    System(
        name="apply",
        stage="laxity.spark.engine.apply:Apply",
        adds="laxity.spark.engine.apply:apply",
        page="docs/pipeline.md",
        example="examples/00_account_for_every_row.py",
    ),
    System(
        name="merge",
        stage="laxity.spark.merging.merge:Merge",
        adds="laxity.spark.api.stream:merge",
        config="laxity.core.merge:MergeTerms",
        report="laxity.core.merge:MergeReport",
        page="docs/merge.md",
        example="examples/01_merge.py",
        demo="traffic",
    ),
    System(
        name="join",
        stage="laxity.spark.merging.join:Join",
        adds="laxity.spark.merging.methods:join",
        report="laxity.core.join:JoinReport",
        page="docs/merge.md",
        example="examples/01_merge.py",
        demo="traffic",
    ),
    System(
        name="revise",
        stage="laxity.spark.revising.revise:Revise",
        adds="laxity.spark.revising.revise:revise",
        config="laxity.spark.revising.app:App",
        report="laxity.core.moment:ReviseReport",
        page="docs/revise.md",
        example="examples/03_revise.py",
        demo="meters",
    ),
)
for _system in SYSTEMS:
    register(_system)
