"""A stream: sources and stages, immutable, until it is started.

A stream of one source has the user's columns beside Laxity's (`_source`, `_event`, `_arrival`,
`_seq`); a stream of several has one struct column per source, null where the row is another's.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from pyspark.sql.types import MapType, StructField, StructType, TimestampType

from laxity.core.merge import MergeTerms
from laxity.core.slack import Fixed, SlackRule
from laxity.core.tuned import Tuned
from laxity.durations import Duration, duration_us
from laxity.errors import ConfigError
from laxity.registry import resolve, systems
from laxity.spark.api.query import Query
from laxity.spark.api.start import Launch
from laxity.spark.engine.apply import apply
from laxity.spark.engine.branch import Branch, made_columns
from laxity.spark.engine.draft import Draft
from laxity.spark.engine.sink import Sink
from laxity.spark.engine.source import Source, check_name, union
from laxity.spark.merging.merge import Merge
from laxity.spark.merging.methods import join
from laxity.spark.merging.tuning import merge_of, tuned_by
from laxity.spark.revising.revise import revise
from laxity.spark.rows.columns import CAME, OWN


class Stream(Draft):
    """Rows on their way; every method gives a new stream.

    A system of the registry adds its own: a function of a stream by its name.
    """

    apply = apply
    join = join
    revise = revise

    def __getattr__(self, name: str) -> Any:
        """What a system from elsewhere adds."""
        for one in systems():
            if one.adds is not None and one.adds.rpartition(":")[2] == name:
                return partial(resolve(one.adds), self)
        raise AttributeError(f"a stream has no {name!r}; there is no system of that name")

    def named(self, name: str) -> "Stream":
        """The stream as an input of another merge, where its rows are a struct of that name.

        It begins with a merge, and its rows say when they happened and arrived (`_event` and
        `_arrival`). The next merge waits for it as for a source, as far as its own merge has
        released; it is idle when all its sources are.

        Parameters
        ----------
        name
            A plain word: it becomes a column, and is in front of its stages' names.

        Returns
        -------
        Stream
            For `laxity.merge`.
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

    def start(
        self,
        name: str,
        *,
        sink: Sink,
        checkpoint: str,
        trigger: Duration | Literal["available_now"] | None = None,
        drain: bool = False,
    ) -> Query:
        """Start the stream as a query; the effective contract is printed.

        Parameters
        ----------
        name
            What the pipeline is called; it may not change between two starts.
        sink
            Where results go: `laxity.parquet`, `table`, `memory`, `console` or `foreach`.
        checkpoint
            A folder of its own for state and accounts.
        trigger
            A duration between batches, `"available_now"` to work through what there is and end, or
            None for as fast as possible.
        drain
            At the end of what is available let everything out, since the input has ended: no row
            stays held, and every result is final. Rows of a later run that lie behind are late.

        Returns
        -------
        Query
            A handle on it.

        Raises
        ------
        ConfigError
            If the sink, trigger or deadline cannot be as asked.
        StateError
            If the checkpoint is in use, or another pipeline's.
        """
        branch = replace(self.branch, name="")
        start = Launch(branch, self.rows, self.schema, self.deadline_us)
        return start(name, sink, str(checkpoint), trigger, drain)


def stream(*sources: Source, deadline: Duration | None = None) -> Stream:
    """One stream of one or more sources, in no particular order.

    Parameters
    ----------
    sources
        Made by `laxity.source`, each with a name of its own.
    deadline
        How long after its arrival a row's result should be out; every report says whether it was
        kept. Nothing is done to keep it: for that, `merge` with a tuned slack.

    Returns
    -------
    Stream
        The columns of the source; of several, one struct each.
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

    Late rows are never dropped. Give all merges of a query the same `Tuned`, and one tuner sets
    their slacks together.

    Parameters
    ----------
    inputs
        Sources, or what other merges made (`Stream.named`).
    slack
        How far the newest event of any source may be ahead of a row that waits for a slower
        source: a duration, or a rule (`Tuned`, `Fixed`, `MaxDelay`, `Tcp`, `Quantile`); None waits
        for every source, however long.
    hold_at_most
        How long a row is held by the clock on the wall, should event time stand still; for `Tuned`
        what its deadline leaves.
    deadline
        As for `stream`; with `Tuned` it is that of the rule, which is tuned to keep it.

    Returns
    -------
    Stream
        Rows with `_read`: `ready` (in order), `slack` (early, a slower source may still send
        something before it) or `late` (behind a row released before).
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
    merged = plain.then(stage, plain.schema.add("_read", "string"))
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
