"""The shape of the code: short functions, short files, no circle of imports, no long chain."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "laxity"
FILES = sorted(SOURCE.rglob("*.py"))
ROOM = "laxity.spark"


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)


def imports(path: Path) -> set[str]:
    """The modules of `laxity.spark` that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(ROOM):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & GRAPH_NAMES or {node.module}
    return found


GRAPH_NAMES = {module_of(path) for path in FILES}
GRAPH = {module_of(path): imports(path) for path in FILES if "spark" in path.parts}


@cache
def chain(module: str, above: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The longest chain of imports that begins with a module."""
    assert module not in above, f"a circle: {' → '.join((*above, module))}"
    tails = [chain(one, (*above, module)) for one in GRAPH.get(module, ())]
    return (module, *max(tails, key=len, default=()))


def test_no_circle_and_no_long_chain_of_imports_inside_spark() -> None:
    longest = max((chain(module) for module in GRAPH), key=len)
    assert len(longest) - 1 <= 8, longest


def test_files_and_functions_are_short() -> None:
    lengths = []
    for path in FILES:
        text = path.read_text()
        assert len(text.splitlines()) <= 300, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                lengths.append(node.end_lineno - node.lineno + 1)  # type: ignore[operator]
    lengths.sort()
    assert lengths[int(0.95 * len(lengths))] <= 25
