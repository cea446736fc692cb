"""What Spark promises those who remember its classes."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from laxity.spark.jvm.class_cache import CLASSES, remember

pytestmark = pytest.mark.spark


def test_pyspark_finds_a_remembered_class_where_it_looks_first(spark: SparkSession) -> None:
    remember(spark)
    known = [vars(spark._jvm)[name] for name in CLASSES]
    for one in known:
        vars(one).pop("col", None)
        vars(one).pop("toSeq", None)
    assert spark.range(3).select(F.concat(F.col("id"), F.lit("!"))).count() == 3
    assert any("col" in vars(one) for one in known)
    assert any("toSeq" in vars(one) for one in known)


def test_classes_are_looked_up_once(spark: SparkSession) -> None:
    remember(spark)
    before = [vars(spark._jvm)[name] for name in CLASSES]
    remember(spark)
    assert [vars(spark._jvm)[name] for name in CLASSES] == before
