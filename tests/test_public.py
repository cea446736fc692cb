import subprocess
import sys

import laxity as lx


def test_every_public_name_can_be_had() -> None:
    for name in lx.__all__:
        assert getattr(lx, name) is not None
    assert dir(lx) == sorted(lx.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(lx, "nonsense")


def test_importing_laxity_imports_neither_spark_nor_sklearn() -> None:
    code = "import sys, laxity; print({'pyspark', 'sklearn', 'pyarrow'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
