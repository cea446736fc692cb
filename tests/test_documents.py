"""README, docs and examples run, or go."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


CODE = {page.name: "\n".join(blocks(page)) for page in PAGES}
CODE |= {program.name: program.read_text() for program in PROGRAMS}
PROGRAMS_AND_PAGES = [
    pytest.param(name, marks=[] if name == "README.md" else pytest.mark.long)
    for name, code in CODE.items()
    if code
]


@pytest.mark.spark
@pytest.mark.parametrize("name", PROGRAMS_AND_PAGES)
def test_the_code_of_every_page_and_example_runs(
    spark: "SparkSession", java_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """In the tests' session, which is active: `lx.session()` gives it back."""
    monkeypatch.chdir(java_folder)
    monkeypatch.setattr(sys, "argv", [name, "5"])  # seconds, for those that run live
    exec(compile(CODE[name], name, "exec"), {})
    for left in java_folder.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_what_each_spark_lacks_is_written_down_and_pinned() -> None:
    from laxity.spark.jvm.spark_version import LACKS, NEWEST, OLDEST

    page = (ROOT / "docs" / "spark-versions.md").read_text()
    assert all(what in page.replace("`", "") for _, what in LACKS)
    versions = [f"{OLDEST[0]}.{minor}" for minor in range(OLDEST[1], NEWEST[1])]
    pins = {file.name for file in ROOT.glob("constraints-spark-*.txt")}
    assert pins == {f"constraints-spark-{version}.txt" for version in versions}
    needed = f'"pyspark[sql]>={versions[0]},<{NEWEST[0]}.{NEWEST[1] + 1}"'
    assert needed in (ROOT / "pyproject.toml").read_text()


def test_lx_knows_which_sparks_it_has_constraints_for() -> None:
    command = [str(ROOT / "lx"), "test", "--spark", "3.5"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert told.stderr == "lx: there are no constraints for Spark 3.5, only for: 4.1 4.2\n"


def test_lx_is_a_shell_script_that_parses() -> None:
    subprocess.run(["sh", "-n", str(ROOT / "lx")], check=True)
