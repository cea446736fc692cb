"""Streaming that keeps its promises, on Spark Structured Streaming.

Importing this package imports neither Spark nor anything else that is slow; the first use does.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from laxity.errors import (
    ConfigError,
    ContractError,
    ContractWarning,
    EngineError,
    LaxityError,
    StateError,
)

if TYPE_CHECKING:
    from laxity.core.slack import Fixed, MaxDelay, Quantile, Tcp
    from laxity.core.tuned import Tuned
    from laxity.spark.api.calibrate import calibrate
    from laxity.spark.api.latest import latest
    from laxity.spark.api.letters import read_letters
    from laxity.spark.api.query import Query
    from laxity.spark.api.session import session
    from laxity.spark.api.sinks import console, foreach, memory, parquet, table
    from laxity.spark.api.stream import Stream, merge, stream
    from laxity.spark.engine.source import source
    from laxity.spark.revising.app import App

__version__ = "0.1.0"

logging.getLogger("laxity").addHandler(logging.NullHandler())  # quiet until someone listens

_HOME = {
    "Fixed": "core.slack",
    "MaxDelay": "core.slack",
    "Quantile": "core.slack",
    "Tcp": "core.slack",
    "Tuned": "core.tuned",
    "App": "spark.revising.app",
    "calibrate": "spark.api.calibrate",
    "latest": "spark.api.latest",
    "merge": "spark.api.stream",
    "read_letters": "spark.api.letters",
    "Query": "spark.api.query",
    "session": "spark.api.session",
    "console": "spark.api.sinks",
    "foreach": "spark.api.sinks",
    "memory": "spark.api.sinks",
    "parquet": "spark.api.sinks",
    "table": "spark.api.sinks",
    "source": "spark.engine.source",
    "Stream": "spark.api.stream",
    "stream": "spark.api.stream",
}

__all__ = [
    "App",
    "ConfigError",
    "ContractError",
    "ContractWarning",
    "EngineError",
    "Fixed",
    "LaxityError",
    "MaxDelay",
    "Quantile",
    "Query",
    "StateError",
    "Stream",
    "Tcp",
    "Tuned",
    "calibrate",
    "console",
    "foreach",
    "latest",
    "memory",
    "merge",
    "parquet",
    "read_letters",
    "session",
    "source",
    "stream",
    "table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'laxity' has no attribute {name!r}")
    return getattr(import_module(f"laxity.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
