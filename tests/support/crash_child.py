"""A driver process that kills itself at a named point of the batch protocol.

    python crash_child.py FOLDER PIPELINE [POINT BATCH]

PIPELINE is `hold` (a source, and a stage that holds rows) or `revise` (merges, then a revise).
POINT is `PHASE.enter` or `PHASE.exit`, `commit.draft` (the commit is written but not yet in
place) or `clean.delete` (the first file of a clean-up is gone). Without POINT it runs to the end.
Java's loaded classes go to an archive, named by CLASSES, or come from there: twice as fast.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import laxity as lx
from laxity.spark.api.java import find_java
from laxity.spark.api.session import QUIET, settings_of
from laxity.spark.api.stream import Stream
from laxity.spark.engine import phases
from laxity.spark.storage import files
from support import readings, stages, traces

JAVA = "spark.driver.extraJavaOptions"
SCHEMA = "id bigint, area bigint, ts string, arrival timestamp"
CONF = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",  # a few hundred rows are not worth a compiler
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    JAVA: QUIET + " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def session() -> SparkSession:
    """A session somebody else made: Laxity's own looks for trace sources in a Python worker."""
    os.environ["JAVA_HOME"] = str(find_java().home())
    classes = Path(os.environ["CLASSES"])
    archive = "SharedArchiveFile" if classes.exists() else "ArchiveClassesAtExit"
    conf: dict[str, Any] = settings_of() | CONF | {JAVA: f"{CONF[JAVA]} -XX:{archive}={classes}"}
    return SparkSession.builder.master("local[2]").config(map=conf).getOrCreate()


def end(spark: SparkSession) -> None:
    """Leave as usual, and wait until Java has left too."""
    gateway: Any = spark._sc._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str, batch: str) -> None:
    """Make this process die at the point, in the given batch or later."""
    plain_phase, plain_delete = phases.Phases.phase, files.LocalFiles.delete
    plain_replace = Path.replace
    here = {"phase": "", "due": False}

    @contextmanager
    def phase(self: phases.Phases, name: str) -> Iterator[None]:
        here["phase"] = name
        here["due"] = int(self._label.rpartition(" ")[2]) >= int(batch)
        if here["due"] and point == f"{name}.enter":
            die()
        with plain_phase(self, name):
            yield
        if here["due"] and point == f"{name}.exit":
            die()

    def replace(draft: Path, path: Path) -> Path:
        if here["due"] and point == "commit.draft" and here["phase"] == "commit":
            die()
        return plain_replace(draft, path)

    def delete(self: files.LocalFiles, name: str) -> None:
        plain_delete(self, name)
        if here["due"] and point == "clean.delete" and here["phase"] == "clean":
            die()

    phases.Phases.phase = phase  # type: ignore[method-assign]
    files.LocalFiles.delete = delete  # type: ignore[method-assign]
    Path.replace = replace  # type: ignore[method-assign,assignment]


def hold(spark: SparkSession, folder: Path) -> Stream:
    """A source, and a stage that holds rows."""
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    source = lx.source(
        "bus",
        rows.parquet(str(folder / "input")),
        event_time="ts",
        arrival="arrival",
        sequence="id",
    )
    return traces.with_stage(lx.stream(source), stages.Hold())


def revise(spark: SparkSession, folder: Path) -> Stream:
    """Two merges, and what slack and lateness made them read too early mended behind them."""
    north, south, east = (
        readings.stream(spark, folder / name, name).branch.own_sources[0]
        for name in ("north", "south", "east")
    )

    def flat(rows: DataFrame) -> DataFrame:
        sides = ("land.north", "land.south", "east")
        both = [F.coalesce(*(f"{side}.{c}" for side in sides)).alias(c) for c in ("meter", "kwh")]
        return rows.select("_event", *both)

    land = lx.merge(north, south, slack="2h").named("land")
    app = lx.App(readings.totals, windows=readings.TOTALS)
    merged = lx.merge(land, east, slack="2h").apply(flat)
    return merged.revise(app, by="meter", lateness="40h", period="1h")


PIPELINES = {"hold": hold, "revise": revise}


def main(folder: Path, pipeline: str, *kill: str) -> None:
    if kill:
        arm(*kill)
    spark = session()
    traces.run(PIPELINES[pipeline](spark, folder), folder)
    end(spark)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
