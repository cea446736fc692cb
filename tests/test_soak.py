"""What takes hours: every Spark version, the figures at full scale."""

import subprocess
from pathlib import Path

import pytest

from laxity.paper import FIGURES

ROOT = Path(__file__).parent.parent
OLDEST = "4.1"
PIPELINES = "test_any_batching or jvm"


def lx(*words: str) -> None:
    """Run the script as a person does."""
    done = subprocess.run([ROOT / "lx", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.long
def test_the_oldest_spark_keeps_its_contracts_and_runs_a_pipeline_of_every_system() -> None:
    files = ("tests/spark/jvm", "tests/spark/test_every_stage.py")
    lx("test", "--spark", OLDEST, "-n", "0", "-q", "-k", PIPELINES, *files)


@pytest.mark.soak
@pytest.mark.parametrize("version", [OLDEST, "4.2"])
def test_every_test_of_the_engine_passes_on_other_versions(version: str) -> None:
    lx("test", "--spark", version, "-q", "tests/spark")


@pytest.mark.soak
@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_holds_at_full_scale(figure: str, work: Path) -> None:
    lx("paper", "run", figure, "--scale", "full", "--out", str(work))
