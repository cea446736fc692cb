"""A user's own stream, from `MODULE:NAME` and settings; commands that need the user's code load it.

The name is a stream, or a function that gives one. A function gets a session if it has a parameter
`spark`, and the settings by name, as what its annotations or its defaults say they are.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module, invalidate_caches
from inspect import Parameter, signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

import laxity as lx
from laxity.errors import ConfigError

PLAIN = (bool, int, float, str, Path)  # defaults whose type says what a setting is


def load(target: str, settings: Mapping[str, str]) -> "lx.Stream | lx.Query":
    """The stream of a `MODULE:NAME` with the settings; a query if the function has started it."""
    found = named(target)
    if isinstance(found, lx.Stream):
        if settings:
            raise ConfigError(
                f"{target} is a stream and takes no settings, got {', '.join(settings)}: "
                "make it a function that gives the stream"
            )
        return found
    if not callable(found):
        raise ConfigError(f"{target} must be a stream or a function, got {_kind_of(found)}")
    given = found(**_arguments(target, found, settings))
    if not isinstance(given, lx.Stream | lx.Query):
        raise ConfigError(
            f"{target} must give a laxity.Stream, or a Query it has started; got {_kind_of(given)}"
        )
    return given


def named(target: str) -> Any:
    """What a `MODULE:NAME` names; modules of the working folder are found too."""
    module, _, name = target.partition(":")
    if not module or not name:
        raise ConfigError(
            f"what to run is named MODULE:NAME, like my_module:stream; got {target!r}"
        )
    if "" not in sys.path:
        sys.path.insert(0, "")
    invalidate_caches()
    try:
        found = import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{target}: {error}; modules are looked for in {Path.cwd()} and where Python looks"
        ) from error
    if not hasattr(found, name):
        there = [one for one in vars(found) if one[0] != "_" and _own(vars(found)[one], module)]
        raise ConfigError(f"{target}: {module} has no {name}; it has {', '.join(there) or 'none'}")
    return getattr(found, name)


def settings_of(texts: Sequence[str]) -> dict[str, str]:
    """Settings as they are given on the command line.

    >>> settings_of(["slack=2s", "when=a = b"])
    {'slack': '2s', 'when': 'a = b'}
    """
    for text in texts:
        if not text.partition("=")[0].isidentifier() or "=" not in text:
            raise ConfigError(f"--set takes NAME=VALUE, got {text!r}")
    return {text.partition("=")[0]: text.partition("=")[2] for text in texts}


def _arguments(
    target: str, function: Callable[..., Any], settings: Mapping[str, str]
) -> dict[str, Any]:
    """What the function is called with."""
    parameters = signature(function).parameters
    named_ones = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    takes = {name: one for name, one in parameters.items() if one.kind in named_ones}
    session = takes.pop("spark", None)
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
    unknown = [] if takes_any else [name for name in settings if name not in takes]
    if unknown:
        raise ConfigError(
            f"{target} has no setting {', '.join(unknown)}; it has {', '.join(takes) or 'none'}"
        )
    needed = [name for name, one in takes.items() if one.default is one.empty]
    missing = [name for name in needed if name not in settings]
    if missing:
        raise ConfigError(f"{target} needs {' '.join(f'--set {name}=…' for name in missing)}")
    names = vars(sys.modules[function.__module__])
    kinds = {name: _kind(one, names) for name, one in takes.items()}
    values = {k: _value(f"--set {k}", v, kinds.get(k, str)) for k, v in settings.items()}
    return values if session is None else values | {"spark": lx.session("laxity run")}


def _kind(parameter: Parameter, names: dict[str, Any]) -> Any:
    """What a parameter is: as it is annotated, else as its default is, else text."""
    if parameter.annotation is not parameter.empty:
        with suppress(NameError):  # a name that only type checkers see
            said = SimpleNamespace(__annotations__={"it": parameter.annotation})
            return get_type_hints(said, names)["it"]
    return type(parameter.default) if isinstance(parameter.default, PLAIN) else str


def _value(what: str, text: str, kind: Any) -> Any:
    """A setting as what it is to be; text, if only the function knows what that is."""
    try:
        return TypeAdapter(kind).validate_python(text)
    except PydanticSchemaGenerationError:
        return text
    except ValidationError as error:
        raise ConfigError(f"{what}={text}: {error.errors()[0]['msg']}") from error


def _own(what: object, module: str) -> bool:
    """Whether something could have been meant."""
    made_here = callable(what) and getattr(what, "__module__", None) == module
    return made_here or isinstance(what, lx.Stream)


def _kind_of(what: object) -> str:
    return type(what).__name__
