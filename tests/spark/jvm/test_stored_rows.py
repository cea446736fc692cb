"""What Spark promises of a local checkpoint."""

import pytest
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from laxity.spark.jvm.stored_rows import StoredRows

pytestmark = pytest.mark.spark


def checkpoint(spark: SparkSession) -> DataFrame:
    level = StorageLevel.MEMORY_AND_DISK_DESER
    rows = spark.range(50).selectExpr("id", "rand() AS made")
    return rows.localCheckpoint(eager=False, storageLevel=level)


def kept(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext._jsc.getPersistentRDDs())


def test_a_local_checkpoint_is_one_rdd_that_a_count_fills(spark: SparkSession) -> None:
    before, rows = kept(spark), checkpoint(spark)
    StoredRows(rows).compute()
    (rdd,) = (spark.sparkContext._jsc.getPersistentRDDs()[n] for n in kept(spark) - before)
    infos = {info.id(): info for info in spark.sparkContext._jsc.sc().getRDDStorageInfo()}
    assert infos[rdd.id()].numCachedPartitions() == rdd.getNumPartitions()
    assert sorted(rows.collect()) == sorted(rows.collect())


def test_a_local_checkpoint_is_let_go_of_by_its_rdd(spark: SparkSession) -> None:
    before, stored = kept(spark), StoredRows(checkpoint(spark))
    stored.compute()
    assert len(kept(spark) - before) == 1
    stored.release()
    assert kept(spark) == before
