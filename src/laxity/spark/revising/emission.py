"""What a revise answers in one micro-batch: new results, and older ones that late rows change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.moment import Moment
from laxity.spark.revising.app import App, Evaluation
from laxity.spark.revising.findings import Findings
from laxity.spark.revising.holes import Keys, meets
from laxity.spark.revising.marks import KEY, OPEN
from laxity.spark.revising.places import Places, small
from laxity.spark.revising.reevaluation import Replay, may_change
from laxity.spark.revising.retained import Retained
from laxity.spark.rows.columns import EVENT_US
from laxity.spark.rows.results import FINAL, RETRACTED, REVISED, TENTATIVE
from laxity.spark.rows.runtime_literal import runtime_literal

GIVEN = "given"  # the table of answers that are not final


@dataclass(frozen=True)
class Emission:
    """An app, how it is evaluated in this batch, and what was found out about its rows."""

    app: App
    evaluate: Evaluation
    places: Places
    retained: Retained
    findings: Findings

    def all_results(
        self, present: DataFrame, keeping: Callable[[], object]
    ) -> Callable[[], DataFrame]:
        """What gives the results between the edges and those before them that are new or changed.

        They have status and revision, and are at hand if some may have to be kept. With late rows
        the app is evaluated once for both, beside all else unless it is one query that takes turns.
        What is to be kept begins when the evaluation has, so it does not wait.
        """
        late_rows, keys, retained = self.findings.late_rows, self.findings.keys, self.retained
        rows, us = self.places.without(present), F.unix_micros("_event")
        answered = us <= runtime_literal(retained.moment.answered_us, us)
        wanted = ~answered & (us <= runtime_literal(retained.moment.watermark_us, us))
        if late_rows is None or keys is None or (self.app.own_query and not late_rows.n.due):
            keeping()
            return lambda: self._first(self.evaluate(rows).where(wanted))
        replay = Replay(self.app, self.places, retained.moment, late_rows, keys)
        status = _status(self.places, retained.moment).alias("_status")

        def both() -> DataFrame:
            everything = rows.unionByName(self.places.without(replay.older()))
            # evaluated while it is planned what is told of it
            results = retained.worked_out(replay.asked(self.evaluate(everything), wanted, status))
            keeping()
            given = retained.tables.read(GIVEN)
            if given is None:  # so what was not final before has had no result, and is new
                late = FINAL if retained.moment.drains else TENTATIVE
                now = F.when(answered, late).otherwise(F.col("_status"))
                return results.withColumns({"_status": now, "_revision": F.lit(0)})
            changed = replay.changes(results.where(answered).drop("_status"), given)
            new = results.where(~answered).withColumn("_revision", F.lit(0))
            cores = results.sparkSession.sparkContext.defaultParallelism
            return retained.at_hand(new.unionByName(changed).coalesce(cores))

        return both if self.app.own_query else retained.background.start(both)

    def _first(self, answers: DataFrame) -> DataFrame:
        """Answers that are given for the first time."""
        answers = with_status(answers, self.findings.keys, self.places, self.retained.moment)
        return self.retained.at_hand(answers) if self._some_open else answers

    @property
    def _some_open(self) -> bool:
        """Whether some of them may not be final."""
        return self.findings.keys is not None or self.places.step is None

    def remember(self, results: DataFrame, by_status: Mapping[str, int]) -> None:
        """Begin to keep the answers that may still change, if there are any."""
        tables, moment = self.retained.tables, self.retained.moment
        if not moment.drains and any(
            by_status[status] for status in (TENTATIVE, REVISED, RETRACTED)
        ):
            answers = may_change(results, self.app.naming(self.places.by))
            tables.append(GIVEN, answers, expire_by=EVENT_US, newest=moment.watermark_us)
            tables.begin(GIVEN, self.retained.background)
        tables.expire(GIVEN, moment.final_us + 1)


def with_status(answers: DataFrame, keys: Keys | None, places: Places, moment: Moment) -> DataFrame:
    """First answers with status; without keys in doubt they are final, if anybody sees it."""
    status = _status(places, moment)
    if places.step is not None and keys is None:
        status = F.lit(FINAL)
    elif places.step is not None and keys is not None:
        answers = answers.withColumn(KEY, places.key)
        answers = answers.join(small(keys.holes, keys.n_keys), KEY, "left")
    return answers.withColumns({"_status": status, "_revision": F.lit(0)}).drop(KEY, OPEN)


def _status(places: Places, moment: Moment) -> Column:
    """The status of a first answer beside the holes of its key."""
    if moment.drains:
        return F.lit(FINAL)
    if places.step is None:
        return F.lit(TENTATIVE)
    return F.when(meets(moment), TENTATIVE).otherwise(FINAL)
