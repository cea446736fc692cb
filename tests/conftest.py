"""One Spark session for the whole run; most tests need none."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # nothing here runs for long

settings.register_profile("laxity", deadline=None, derandomize=True)
settings.load_profile("laxity")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    import laxity as lx
    from laxity.spark.session import SETTINGS

    java = "spark.driver.extraJavaOptions"
    home = tmp_path_factory.mktemp("spark")
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
            "spark.sql.codegen.wholeStage": "false",  # few rows are not worth a compiler
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            java: f"{SETTINGS[java]} {QUICK_JAVA}",
        },
    )
    yield session
    session.stop()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder for one test's checkpoint and results."""
    return tmp_path


@pytest.fixture(scope="module")
def own_temp_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Traces that are made and kept go with the tests that made them."""
    folder = tmp_path_factory.mktemp("traces")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder
