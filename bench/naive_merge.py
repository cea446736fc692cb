"""The merge as one would write it with `transformWithStateInPandas`: what ours is measured against.

Rows wait in a list state until every source has moved past them, then come out sorted. It keeps no
account, knows no slack, no idle sources, no late rows and no ties.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

COLUMNS = "ts timestamp, id bigint, area bigint, value bigint"
NAMES = ["source", "ts", "id", "area", "value"]
STATE = f"source string, {COLUMNS}"
KEYS = 2


class Merge(StatefulProcessor):
    """Holds rows in a list and the newest time of either source in a value."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._held = handle.getListState("held", STATE)
        self._newest = handle.getValueState("newest", "bus timestamp, scats timestamp")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        old = pd.DataFrame(list(self._held.get()), columns=NAMES)
        new = pd.concat([part[NAMES] for part in rows])
        waiting = pd.concat([old, new]) if len(old) else new
        newest = dict(zip(("bus", "scats"), self._newest.get() or (None, None), strict=True))
        for source, ts in new.groupby("source")["ts"].max().items():
            newest[str(source)] = max(ts, pd.Timestamp(newest[str(source)] or 0))
        self._newest.update((newest["bus"], newest["scats"]))
        if None in newest.values():
            ready = waiting["ts"] < pd.Timestamp(0)
        else:
            ready = waiting["ts"] <= min(newest.values())
        self._held.put(list(waiting[~ready].itertuples(index=False, name=None)))
        yield waiting[ready].sort_values(["ts", "source", "id"])

    def close(self) -> None:
        """Nothing to let go of."""


def naive_merge(sources: dict[str, DataFrame]) -> DataFrame:
    """The rows of the sources in order, per key."""
    named = [rows.withColumn("source", F.lit(name)) for name, rows in sources.items()]
    rows = reduce(DataFrame.unionByName, named).withColumn("key", F.col("id") % KEYS)
    return rows.groupBy("key").transformWithStateInPandas(
        statefulProcessor=Merge(), outputStructType=STATE, outputMode="Append", timeMode="None"
    )
