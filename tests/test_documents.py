"""README, docs and examples run, or go."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(
    page: Path, spark: object, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    names: dict[str, object] = {}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.spark
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_an_example_runs(
    program: Path, spark: object, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    exec(compile(program.read_text(), str(program), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_lx_is_a_shell_script_that_parses() -> None:
    subprocess.run(["sh", "-n", str(ROOT / "lx")], check=True)
