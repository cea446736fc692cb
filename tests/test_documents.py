"""README, docs and examples run, or go."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


def program() -> str:
    """All pages and examples as one program, each in a namespace of its own."""
    texts = {page.name: "\n".join(blocks(page)) for page in PAGES}
    texts |= {program.name: program.read_text() for program in PROGRAMS}
    runs = [f"exec(compile({text!r}, {name!r}, 'exec'), {{}})" for name, text in texts.items()]
    return "\n".join(runs)


@pytest.mark.spark
def test_the_code_of_every_page_and_example_runs(work: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", program()]
    quick = os.environ | {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    done = subprocess.run(command, cwd=work, env=quick, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "buses run late" in done.stdout


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_lx_is_a_shell_script_that_parses() -> None:
    subprocess.run(["sh", "-n", str(ROOT / "lx")], check=True)
