"""Java is touched in one room, and nowhere else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "src" / "laxity"
ROOM = SOURCES / "spark" / "jvm"
DOORS = {"_jvm", "_jdf", "_jsc", "_jsparkSession", "_gateway", "_jrdd", "_jc", "_jsq"}
DOORS |= {"_jreader", "_jwrite", "_jo", "_sc"}
LIBRARIES = ("py4j", "pyspark.java_gateway")


def touches(code: str) -> list[str]:
    """What a file does that only the room may do, by line."""
    return [f"line {line}: {what}" for line, what in sorted(_touches(ast.parse(code)))]


def _touches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Constant(value=str(name)):
                if name in DOORS:  # as a text too: getattr takes one
                    yield node.lineno, name
            case ast.Import(names=names):
                yield from ((node.lineno, one.name) for one in names if _java(one.name))
            case ast.ImportFrom(module=str(module)) if _java(module):
                yield node.lineno, module


def _java(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in LIBRARIES)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("def f(spark):\n    return spark._jvm.java", ["line 2: _jvm"]),
        ("plan = rows.select('a')._jdf.queryExecution()", ["line 1: _jdf"]),
        ("x = spark._sc._gateway", ["line 1: _gateway", "line 1: _sc"]),
        ("y = spark._jsc, spark._jsparkSession", ["line 1: _jsc", "line 1: _jsparkSession"]),
        ("z = getattr(spark, '_jvm')", ["line 1: _jvm"]),
        ("import json, py4j.protocol", ["line 1: py4j.protocol"]),
        ("def g():\n    from py4j import java_gateway", ["line 2: py4j"]),
        ("from pyspark.java_gateway import local_connect", ["line 1: pyspark.java_gateway"]),
    ],
)
def test_the_check_sees_whoever_touches_java(code: str, what: list[str]) -> None:
    assert touches(code) == what


def test_the_check_lets_words_about_java_pass() -> None:
    code = '"""Of the _jvm."""\nimport py4jx\nlogging.getLogger("py4j.clientserver")\n_job = 1\n'
    assert touches(code) == []


def test_the_room_itself_touches_java() -> None:
    assert any(touches(file.read_text()) for file in ROOM.glob("*.py"))


@pytest.mark.parametrize(
    "file",
    [file for file in sorted(SOURCES.rglob("*.py")) if ROOM not in file.parents],
    ids=lambda file: str(file.relative_to(SOURCES)),
)
def test_nothing_outside_the_room_touches_java(file: Path) -> None:
    assert touches(file.read_text()) == []
