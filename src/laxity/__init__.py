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
    from laxity.spark.app import App
    from laxity.spark.calibrate import calibrate
    from laxity.spark.latest import latest
    from laxity.spark.letters import read_letters
    from laxity.spark.query import Query
    from laxity.spark.session import session
    from laxity.spark.sinks import console, foreach, memory, parquet, table
    from laxity.spark.sources import source
    from laxity.spark.stream import Stream, merge, stream

__version__ = "0.1.0"

logging.getLogger("laxity").addHandler(logging.NullHandler())  # quiet until someone listens

_HOME = {
    "Fixed": "core.slack",
    "MaxDelay": "core.slack",
    "Quantile": "core.slack",
    "Tcp": "core.slack",
    "Tuned": "core.tuned",
    "App": "spark.app",
    "calibrate": "spark.calibrate",
    "latest": "spark.latest",
    "merge": "spark.stream",
    "read_letters": "spark.letters",
    "Query": "spark.query",
    "session": "spark.session",
    "console": "spark.sinks",
    "foreach": "spark.sinks",
    "memory": "spark.sinks",
    "parquet": "spark.sinks",
    "table": "spark.sinks",
    "source": "spark.sources",
    "Stream": "spark.stream",
    "stream": "spark.stream",
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
