"""A stream: sources and stages, immutable, until it is started.

A stream of one source has the user's columns beside Laxity's (`_source`, `_event`, `_arrival`,
`_seq`); a stream of several has one struct column per source, null where the row is another's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, MapType, StructField, StructType, TimestampType

from laxity.core.merge import MergeTerms
from laxity.core.slack import Fixed, SlackRule
from laxity.core.triggers import Trigger
from laxity.core.tuned import Tuned
from laxity.durations import Duration, duration_us
from laxity.errors import ConfigError
from laxity.spark.api.query import Query
from laxity.spark.api.start import Launch
from laxity.spark.engine.apply import Apply
from laxity.spark.engine.branch import Branch, made_columns
from laxity.spark.engine.row_by_row import check_row_by_row
from laxity.spark.engine.sink import Sink
from laxity.spark.engine.source import Source, check_name, union
from laxity.spark.engine.stage import Stage
from laxity.spark.jvm.plans import analyzed_plan
from laxity.spark.merging.join import Join
from laxity.spark.merging.merge import Merge
from laxity.spark.merging.tuning import merge_of, tuned_by
from laxity.spark.revising.app import App
from laxity.spark.revising.column_pruning import columns_used_by
from laxity.spark.revising.late_rows import checked_trigger
from laxity.spark.revising.places import places_in
from laxity.spark.revising.revise import Revise
from laxity.spark.rows.columns import CAME, OWN


@dataclass(frozen=True)
class Stream:
    """Rows on their way; every method gives a new stream."""

    branch: Branch
    rows: DataFrame
    schema: StructType
    deadline_us: int | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What its rows go through."""
        return self.branch.stages

    def _then(self, stage: Stage, schema: StructType) -> "Stream":
        """The stream with one more stage."""
        if stage.name in [one.name for one in self.stages]:
            raise ConfigError(f"there is a stage {stage.name} already: state it once")
        branch = replace(self.branch, stages=(*self.stages, stage))
        return replace(self, branch=branch, schema=schema)

    def apply(self, fn: Callable[[DataFrame], DataFrame], *, per_batch: bool = False) -> "Stream":
        """Add a function of the rows, each by itself; it is tried on an empty batch at once.

        It gets the rows of one batch after the other, so one that combines rows (`groupBy`,
        `distinct`, a window function, `limit`, `orderBy`, a join of the rows with themselves …)
        would give partial results, and is refused; with static tables it may do as it likes.
        `per_batch`: it means each batch by itself, and may combine the rows of one.
        """
        stage = Apply(fn, position=len(self.stages) + 1, per_batch=per_batch)
        empty = self._empty()
        try:
            result = fn(empty)
        except Exception as error:
            raise ConfigError(
                f"apply({stage.called}) fails on the stream's columns "
                f"({', '.join(self.schema.names)}): {error}"
            ) from error
        if not isinstance(result, DataFrame):
            raise ConfigError(
                f"apply({stage.called}) must give a DataFrame, got {type(result).__name__}"
            )
        if not per_batch:
            check_row_by_row(stage.called, analyzed_plan(result), analyzed_plan(empty))
        return self._then(stage, result.schema)

    def join(
        self,
        left: str,
        right: str,
        *,
        on: str | Sequence[str],
        within: Duration,
        when: str = "true",
    ) -> "Stream":
        """Pair the rows of two sources of a merge, in a sliding window.

        `on`: the column or columns, of both sources, that must be equal. `within`: how far apart
        in event time. `when`: a condition in SQL, like `"bus.delay > 120 AND scats.flow > 40"`.
        Each pair comes once, with the columns of `on`, a struct for either source, `_event` and
        `_arrival` of the later row, and `_read`, how the second of them was read.
        """
        if not self.stages or not isinstance(self.stages[-1], Merge):
            raise ConfigError("join takes rows as a merge reads them: call it right after lx.merge")
        keys = (on,) if isinstance(on, str) else tuple(on)
        self._check_sides(left, right, keys)
        names = self.branch.names
        stage = Join(left, right, keys, duration_us(within, "within"), when, names)
        try:
            result = stage.among(self._empty())
        except AnalysisException as error:
            raise ConfigError(f"join: when {when!r} does not fit the columns: {error}") from error
        return self._then(stage, result.schema)

    def revise(
        self,
        app: App,
        *,
        by: str | Sequence[str],
        lateness: Duration,
        period: Duration | None = None,
        sequence: str | None = None,
        trigger: str | Trigger = "eager",
    ) -> "Stream":
        """Answer at once, and again what late rows change, until a result is exact.

        `by`: the column or columns that name a key. `lateness`: how late a row may be; later ones
        are rejected, with `late_by`. `period`: how often each key sends a row; or `sequence`: the
        column that numbers its rows. Either tells where rows are missing, so that only rows near
        those are kept; with neither all rows within the lateness are. `trigger`: when late rows
        are replayed, `"eager"` (at once), `"lazy"` (with the key's next row on time) or a function
        of `Waiting`.

        Results carry `_status` (`final`, `tentative`, `revised`, `retracted`) and `_revision`;
        `lx.latest` gives the newest of each.
        """
        if any(isinstance(stage, Revise) for stage in self.stages):
            raise ConfigError("a stream can be revised once: results change, rows do not")
        keys = (by,) if isinstance(by, str) else tuple(by)
        places = places_in(self.schema, keys, period, sequence)
        lateness_us = duration_us(lateness, "lateness")
        app.check(self._empty(), keys)
        used = columns_used_by(app, self._empty(), places.columns)
        stage = Revise(app, places, used, lateness_us, checked_trigger(trigger))
        return self._then(stage, stage.empty_results(self._empty()).schema)

    def named(self, name: str) -> "Stream":
        """The stream as an input of another merge, where its rows are a struct of that name.

        It begins with a merge, and its rows say when they happened and arrived (`_event` and
        `_arrival`). The next merge waits for it as for a source, as far as its own merge has
        released; it is idle when all its sources are.
        """
        check_name(name)
        if merge_of(self.branch) is None:
            raise ConfigError(f"named {name}: only what lx.merge made is an input of another merge")
        there = {field.name: field.dataType for field in self.schema}
        lost = [c for c in ("_event", "_arrival") if there.get(c) != TimestampType()]
        if lost:
            raise ConfigError(f"named {name}: rows need their {' and '.join(lost)}, as timestamps")
        if "_seq" not in there and any(isinstance(kind, MapType) for kind in there.values()):
            raise ConfigError(f"named {name}: rows with a map cannot be put in order; drop it")
        return replace(self, branch=replace(self.branch, name=name))

    def _check_sides(self, left: str, right: str, keys: Sequence[str]) -> None:
        names = self.branch.names
        if left == right or not {left, right} <= set(names):
            raise ConfigError(
                f"join pairs two different sources of the merge ({', '.join(names)}); "
                f"got {left} and {right}"
            )
        if not keys:
            raise ConfigError("join needs at least one column in on=")
        for key in keys:
            kinds = [_field(self.schema, side, key) for side in (left, right)]
            if kinds[0] != kinds[1]:
                shown = " and ".join(kind.simpleString() for kind in kinds)
                raise ConfigError(f"join: column {key} has two types, {shown}: cast one")
            if key in names or key.startswith("_"):
                raise ConfigError(
                    f"join: {key} is taken as a name of the result; rename the column"
                )

    def _empty(self) -> DataFrame:
        return self.rows.sparkSession.createDataFrame([], self.schema)

    def start(
        self,
        name: str,
        *,
        sink: Sink,
        checkpoint: str,
        trigger: Duration | Literal["available_now"] | None = None,
        drain: bool = False,
    ) -> Query:
        """Start the stream as a query.

        `trigger`: a duration between batches, `"available_now"` to work through what there is
        and end, or None for as fast as possible. The effective contract is printed.
        `drain`: at the end of what is available let everything out, since the input has ended: no
        row stays held, and every result is final. Rows of a later run that lie behind are late.
        """
        branch = replace(self.branch, name="")
        start = Launch(branch, self.rows, self.schema, self.deadline_us)
        return start(name, sink, str(checkpoint), trigger, drain)


def stream(*sources: Source, deadline: Duration | None = None) -> Stream:
    """One stream of one or more sources, in no particular order.

    `deadline`: how long after its arrival a row's result should be out; every report says whether
    it was kept. Nothing is done to keep it: for that, `merge` with a tuned slack.
    """
    if any(isinstance(one, Stream) for one in sources):
        raise ConfigError("lx.stream takes sources; it is lx.merge that takes other streams too")
    rows = union(sources)
    schema = StructType([f for f in rows.schema if f.name not in ("_dead", "_raw")])
    deadline_us = None if deadline is None else duration_us(deadline, "deadline")
    return Stream(Branch(tuple(sources), ()), rows, schema, deadline_us)


def merge(
    *inputs: Source | Stream,
    slack: SlackRule | Duration | None,
    hold_at_most: Duration | None = None,
    deadline: Duration | None = None,
) -> Stream:
    """The rows of several sources as one stream in order, none waiting past its slack.

    `inputs`: sources, or what other merges made (`Stream.named`). Give all merges of a query the
    same `Tuned`, and one tuner sets their slacks together.
    `slack`: how far the newest event of any source may be ahead of a row that waits for a slower
    source: a duration, or a rule (`Tuned`, `Fixed`, `MaxDelay`, `Tcp`, `Quantile`); None waits for
    every source, however long. `hold_at_most`: how long a row is held by the clock on the wall,
    should event time stand still; what its deadline leaves for `Tuned`. `deadline`: as for
    `stream`; with `Tuned` it is that of the rule, which is tuned to keep it.

    Released rows carry `_read`: `ready` (in order), `slack` (early, a slower source may still send
    something before it) or `late` (behind a row released before). Late rows are never dropped.
    """
    rule = Fixed(slack) if slack is None or isinstance(slack, Duration) else slack
    if not hasattr(rule, "next"):
        raise ConfigError(f"slack must be a duration, a slack rule or None; got {slack!r}")
    if isinstance(rule, Tuned):
        if deadline is not None and duration_us(deadline, "deadline") != rule.tuner.deadline_us:
            raise ConfigError(
                f"deadline {deadline} is not that of the tuned slack, {rule.deadline}: state one"
            )
        deadline = rule.deadline
    plain = _plain(inputs, deadline)
    terms = MergeTerms(
        rule,
        ties=frozenset(s.name for s in plain.branch.own_sources if not s.terms.unique_times),
        hold_at_most_us=None if hold_at_most is None else duration_us(hold_at_most, "hold_at_most"),
    )
    came = CAME if plain.branch.before else "_arrival"
    stage = Merge(plain.branch.names, terms, came)
    merged = plain._then(stage, plain.schema.add("_read", "string"))
    tuned_by(merged.branch)
    return merged


def _plain(inputs: Sequence[Source | Stream], deadline: Duration | None) -> Stream:
    """The rows of all inputs, before they are merged."""
    sources = [one for one in inputs if isinstance(one, Source)]
    if len(sources) == len(inputs):
        return stream(*sources, deadline=deadline)
    if len(inputs) == 1:
        raise ConfigError("a merge of streams needs at least two inputs, got one")
    branches = tuple(one.branch if isinstance(one, Stream) else one for one in inputs)
    branch = Branch(branches, ())
    names = [name for one in branch.walk() for name in one.names]
    if not all(names):
        raise ConfigError('name a stream before it is merged: stream.named("jams")')
    if len(set(names)) < len(names):
        raise ConfigError(f"inputs need names of their own; got {', '.join(names)}")
    deadline_us = None if deadline is None else duration_us(deadline, "deadline")
    for one in inputs:
        if isinstance(one, Stream) and one.deadline_us not in (None, deadline_us):
            raise ConfigError("a deadline is the whole query's: state it in the last lx.merge")
    rows = union(branch.sources)
    fields = [f for f in rows.schema if f.name in OWN and f.name not in ("_dead", "_raw")]
    for one in inputs:
        if isinstance(one, Stream):
            made = StructType([one.schema[column] for column in made_columns(one.schema)])
            fields.append(StructField(one.branch.name, made))
        else:
            fields.append(rows.schema[one.name])
    return Stream(branch, rows, StructType(fields), deadline_us)


def _field(schema: StructType, source: str, column: str) -> DataType:
    """The type of a source's column."""
    fields = schema[source].dataType
    assert isinstance(fields, StructType)
    if column not in fields.names:
        there = ", ".join(fields.names)
        raise ConfigError(f"join: source {source} has no column {column}; there are {there}")
    return fields[column].dataType
