"""One Spark session for the whole run; most tests need none."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from laxity.spark.jvm.spark_version import spark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Nothing here runs for long; but code that is thrown out of a small cache is compiled again.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"

settings.register_profile("laxity", deadline=None, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("laxity")


LANES = {
    "long": "run the tests that take long, no others",
    "soak": "run the tests that take hours, no others",
    "production": "run the tests marked so with the settings that users have, no others",
}
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",  # few rows are not worth a compiler
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for lane, text in LANES.items():
        parser.addoption(f"--{lane}", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """A Spark before 4.2 leaves it to Python to close what it read results from."""
    if spark_version() < (4, 2):
        config.addinivalue_line("filterwarnings", "ignore:unclosed .socket:ResourceWarning")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long has a run of its own. The longest comes first: two processes end together."""
    for item in items:
        for mark in item.iter_markers("since"):
            if spark_version() < mark.args:
                item.add_marker(pytest.mark.skip(reason=f"Spark has it since {mark.args}"))
    others = [item for item in items if not _asked_for(item, config)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]
    marks = ("crash", "spark")
    items.sort(key=lambda item: [*(item.get_closest_marker(m) is None for m in marks)])


def _asked_for(item: pytest.Item, config: pytest.Config) -> bool:
    """Whether a test belongs to the lane that runs; the usual one has all that is quick."""
    lanes = [lane for lane in LANES if config.getoption(f"--{lane}")]
    marks = {mark.name for mark in item.iter_markers()}
    return lanes[0] in marks if lanes else not marks & {"long", "soak"}


@pytest.fixture(scope="session")
def java_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder Java starts in: where it looks for a path that is not absolute."""
    return tmp_path_factory.mktemp("java")


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the classes that Java has loaded, once somebody has made it."""
    return tmp_path_factory.mktemp("classes") / "classes.jsa"


@pytest.fixture(scope="session")
def spark(
    own_cache: Path,
    java_folder: Path,
    java_classes: Path,
    tmp_path_factory: pytest.TempPathFactory,
    pytestconfig: pytest.Config,
) -> Iterator["SparkSession"]:
    import laxity as lx

    home = tmp_path_factory.mktemp("spark")
    lane = {} if pytestconfig.getoption("--production") else _quick(java_classes)
    here = Path.cwd()
    os.chdir(java_folder)
    session = lx.session(
        "laxity tests",
        cores="2",
        memory="2g",
        conf={
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:laxity;create=true",
            "spark.sql.shuffle.partitions": "2",
        }
        | lane,
    )
    os.chdir(here)
    yield session
    session.stop()


def _quick(java_classes: Path) -> dict[str, str]:
    """Settings for rows so few that compiling code for them takes longer than reading them."""
    from laxity.spark.api.session import QUIET

    options = f"{QUIET} {QUICK_JAVA}"
    if java_classes.exists():
        options += f" -XX:SharedArchiveFile={java_classes}"
    return FEW_ROWS | {"spark.driver.extraJavaOptions": options}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder for one test's checkpoint and results."""
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What is made once and kept goes with the tests; processes that they start find it too."""
    home = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(home))
        yield home
