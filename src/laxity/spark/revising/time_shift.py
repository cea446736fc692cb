"""An app that runs as a stateful query of its own, used like a function of rows.

Nobody looks into its state, sets it back or makes it anew, and like any stream it wants time to
move on. So the rows of every evaluation travel: all by the same multiple of the app's step, past
everything that was sent before by more than the safety distance, and the results travel back
(TinTiN, Lemmas 7-9). A last row, further on, lets time pass so that all results come out; what it
causes itself is older than the results of any later journey, and is left out there.

A journey is written down before the app sees the rows, and found again after a crash: the same
batch takes the same way, and what the app has seen is not sent twice. Under the checkpoint are

    app/in/NAME      the rows that travelled
    app/out/NAME     what the app made of them
    app/ways/NAME    the journey, and whether it is over
    app/checkpoint   Spark's own
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from laxity.core.revise import TimeShift
from laxity.spark.revising.app import App
from laxity.spark.rows.measure import measure
from laxity.spark.storage.files import Files

MOMENT_US = 1_000_000  # longer than the steps of Spark's own clock


class Sent(BaseModel):
    """Rows on their way, or back."""

    model_config = ConfigDict(frozen=True)

    way: TimeShift
    over: bool = False


@dataclass(frozen=True)
class TimeShiftedQuery:
    """The journeys of one batch, told apart by their numbers."""

    app: App
    by: Sequence[str]
    files: Files
    batch_id: int

    def results(self, rows: DataFrame, number: int) -> DataFrame:
        """What the app makes of the rows."""
        name, none = f"{self.batch_id:09}-{number}", rows.where("false")
        sent = self._sent(name) or self._send(rows, name)
        if sent is None:
            return self.app.results(none, self.by)
        if not sent.over:
            self._run(rows, name)
            self._note(name, sent.model_copy(update={"over": True}))
        reader = rows.sparkSession.read.schema(self.app.results(none, self.by).schema)
        found = reader.parquet(f"{self._uri}/out/{name}/*")
        us, way = F.unix_micros("_event"), sent.way
        awaited = found.where((us > way.lo_us) & (us <= way.hi_us))
        return awaited.withColumn("_event", F.timestamp_micros(us - way.offset_us))

    @property
    def _uri(self) -> str:
        return f"{self.files.uri}/app"

    def _sent(self, name: str) -> Sent | None:
        content = self.files.read(f"app/ways/{name}")
        return None if content is None else Sent.model_validate_json(content)

    def _note(self, name: str, sent: Sent) -> None:
        self.files.write(f"app/ways/{name}", sent.model_dump_json().encode())

    def _send(self, rows: DataFrame, name: str) -> Sent | None:
        """Send the rows off; None if there are none."""
        us = F.unix_micros("_event")
        seen = measure(rows, [F.min(us).alias("first_us"), F.max(us).alias("last_us")])
        if seen["first_us"] is None:
            return None
        older = [one for one in self.files.names("app/ways") if one < name]
        way = self._way(seen["first_us"], seen["last_us"], older)
        moved = rows.withColumn("_event", F.timestamp_micros(us + way.offset_us))
        everything = moved.unionByName(_row_at(rows, self._clock_us(way)))
        everything.write.mode("overwrite").parquet(f"{self._uri}/in/{name}")
        sent = Sent(way=way)
        self._note(name, sent)
        self._forget(older)
        return sent

    def _way(self, first_us: int, last_us: int, older: Sequence[str]) -> TimeShift:
        shape = self.app.shape
        before = self._sent(older[-1]) if older else None
        after_us = None if before is None else self._clock_us(before.way)
        answers = first_us - shape.span_us, last_us
        return shape.time_shift(np.array([first_us, last_us]), answers, after_us)

    def _clock_us(self, way: TimeShift) -> int:
        """How far time moves on, so that all results come out."""
        return way.last_us + self.app.shape.span_us + MOMENT_US

    def _forget(self, older: Sequence[str]) -> None:
        """Delete what the batches before left; of the last journey the way is still needed."""
        for name in older:
            if int(name.partition("-")[0]) < self.batch_id:
                kinds = ("in", "out") if name == older[-1] else ("in", "out", "ways")
                for kind in kinds:
                    self.files.delete(f"app/{kind}/{name}")

    def _run(self, rows: DataFrame, name: str) -> None:
        """Let the app run over what it has not seen."""

        def save(results: DataFrame, batch_id: int) -> None:
            results.write.mode("overwrite").parquet(f"{self._uri}/out/{name}/{batch_id}")

        sent = rows.sparkSession.readStream.schema(rows.schema).parquet(f"{self._uri}/in/*")
        results = self.app.results(sent.withWatermark("_event", "0 seconds"), self.by)
        writer = results.writeStream.outputMode("append").foreachBatch(save)
        writer = writer.option("checkpointLocation", f"{self._uri}/checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()


def _row_at(rows: DataFrame, us: int) -> DataFrame:
    """A row of these columns with nothing in it but the time."""
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in rows.schema]
    time = F.timestamp_micros(F.lit(us))
    return rows.sparkSession.range(1).select(*nothing).withColumn("_event", time)
