"""Merge on Spark: rows wait in a state table until the frontier has passed them.

`laxity.core.merge` decides, once a batch and from numbers the intake gathered in its pass over the
rows; here the decision becomes a filter. Late rows are released at once, marked. Held rows stay in
the table `held`, which is appended to and expired by event time, never rewritten whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.ledger import Fates
from laxity.core.merge import FIRST_US, Key, MergeState, MergeTerms, Read, decide, in_words
from laxity.core.progress import Frontier, Passed
from laxity.core.report import Decision
from laxity.core.slack import Seen
from laxity.core.tuned import SEEN, Shared, Tuned
from laxity.core.tuner import TUNING, tuning_of
from laxity.durations import show_us
from laxity.spark.engine.planned import Count, Counts, Needs, Order, Planned, StageResult
from laxity.spark.engine.stage import BatchContext, Stage
from laxity.spark.merging.counts import NOTHING, MergeCounts, NewRows
from laxity.spark.rows.columns import CAME, EVENT_US, RANK, rank_of
from laxity.spark.rows.measure import Numbers
from laxity.spark.rows.partitioning import coalesced
from laxity.spark.rows.runtime_literal import runtime_sql

HELD = "held"
WARM_UP = 10  # batches of a process that teach a slack rule nothing about latency
ACCURACY = 10_000  # of lateness quantiles: a rank is off by a ten-thousandth at most
_FIRST_CAME, _LAST_CAME = "first_came_us", "last_came_us"
_NONE_LATE: dict[str, Any] = {Read.LATE: 0, "oldest_late": None}  # unless the intake saw some


@dataclass(frozen=True)
class Merge(Stage):
    """Releases rows in total order, late ones first, none held past its slack.

    `came`: the column that says when a row came to the merge.
    """

    sources: tuple[str, ...]
    rule: MergeTerms
    came: str = "_arrival"

    name = "merge"

    @property
    def terms(self) -> str:
        """The slack rule and the bound on holding."""
        hold_us = self.rule.hold_at_most_us
        held = "" if hold_us is None else f", held {show_us(hold_us)} at most"
        return f"in order of event, source ({', '.join(self.sources)}), sequence; slack " + (
            f"{self.rule.rule}{held}; late rows pass, marked"
        )

    def needs(self, state: dict[str, Any]) -> Needs:
        """Which rows are late, how late, and when the first and the last of all came."""
        before = MergeState.model_validate(state)
        came_us = f"unix_micros({self.came})"
        came = {_FIRST_CAME: f"min({came_us})", _LAST_CAME: f"max({came_us})"}
        return Needs(came | self._late(before.position) | self._lateness(before.frontier.newest_us))

    def unfinished(self, state: dict[str, Any]) -> str:
        """The rows that wait for slower sources."""
        n_held = MergeState.model_validate(state).n_held
        return f"{n_held:,} rows held" if n_held else ""

    def _late(self, position: Key | None) -> dict[str, str]:
        """How many rows are late, and the oldest of them; rows that were held never are."""
        if position is None:
            return {}
        late = _before(position, RANK)
        return {Read.LATE: f"count_if({late})", "oldest_late": f"min(IF({late}, {EVENT_US}, NULL))"}

    def _lateness(self, newest_us: int | None) -> dict[str, str]:
        """How far the rows lie behind, as far as the slack rule looks."""
        grid = self.rule.rule.grid
        if newest_us is None or not grid:
            return {}
        late_us = f"greatest({runtime_sql(newest_us)} - {EVENT_US}, 0L)"
        if grid == (1.0,):
            return {"lateness": f"max({late_us})"}
        ranks = ", ".join(f"{rank!r}D" for rank in grid)
        return {"lateness": f"percentile_approx({late_us}, array({ranks}), {ACCURACY})"}

    def plan(self, rows: DataFrame, context: BatchContext) -> Planned:
        """Hold what is new, release what the frontier has passed."""
        before = _before_now(self.rule, context)
        terms = _held_by_clock(_hearing(self.rule, context), context)
        seen = _seen(context, before)
        after = decide(terms, before, context.sources, seen, context.now_us, drain=context.drain)
        frontier, heard = after.frontier, _heard(terms, after, context)
        n_live = context.stats.live
        if not n_live and frontier.frontier_us == before.frontier.frontier_us:
            return self._nothing_new(rows, before, after, heard)
        read, n_rows = _read(frontier), n_live + before.n_held
        counting = MergeCounts(self.sources, self.came, _new_rows(context), before, frontier)
        new = rows.withColumn("_read", F.expr(self._marked(read, before.position)))
        counts = self._hold(rows, new, context, counting)
        held, everything = context.tables.read(HELD), new
        if held is not None:
            held = held.withColumn("_read", F.expr(read))
            everything = new.unionByName(held)
            counts["old"] = counting.waited(held, context.background)
        released = coalesced(everything, n_rows).where("_read IS NOT NULL")
        if self.came == CAME:
            released = released.drop(CAME)

        def finish(counted: Counts, _: StageResult | None) -> StageResult:
            near = NOTHING | counted["near"] | counted.get("held", {})
            both = counting.all_new(new, near), counted.get("old", NOTHING)
            late = _NONE_LATE | context.numbers
            return _result(before, after, late | counting.together(*both, held))

        span_us = before.frontier.frontier_us, frontier.frontier_us
        return Planned(
            released,
            finish,
            counts,
            order=Order(self._order(), n_rows, span_us),
            empty=frontier.frontier_us is None,
            frontier=frontier,
            heard=heard,
        )

    def _hold(
        self, rows: DataFrame, new: DataFrame, context: BatchContext, counting: MergeCounts
    ) -> dict[str, Count]:
        """Keep the new rows that have to wait, forget the old ones that need not any more.

        What comes back are the counts of the new rows near the frontier.
        """
        heard = context.stats.heard.values()
        newest = [one.newest_us for one in heard if one.newest_us is not None]
        frontier_us, tables = counting.frontier.frontier_us, context.tables
        counts: dict[str, Count] = {}
        if newest and (frontier_us is None or max(newest) > frontier_us):
            made, riding = counting.waiting(new)
            tables.append(HELD, rows, expire_by=EVENT_US, newest=max(newest), made=made)
            tables.begin(HELD, context.background)
            counts.update(riding)
        else:
            counts["near"] = context.background.start(partial(counting.none_waits, new))
        if frontier_us is not None:
            tables.expire(HELD, frontier_us + 1)
        return counts

    def _nothing_new(
        self, rows: DataFrame, before: MergeState, after: MergeState, heard: Mapping[str, Seen]
    ) -> Planned:
        """No row came and the frontier stands: nothing to do, and no job to find that out."""
        still = {"held": after.n_held, "held_us": after.held_us}
        still |= {"held_arrived_us": after.held_arrived_us}
        result = _result(before, after, NOTHING | _NONE_LATE | still)
        return Planned(
            rows.withColumn("_read", F.lit("")).where("false").drop(CAME),
            lambda counts, before: result,
            empty=True,
            frontier=after.frontier,
            heard=heard,
        )

    def _marked(self, read: str, position: Key | None) -> str:
        """How a new row is read: late if it lies before the last one read in order."""
        if position is None:
            return read
        return f"IF({_before(position, rank_of(self.sources))}, '{Read.LATE}', {read})"

    def _order(self) -> tuple[Column, ...]:
        """Late rows first, then the total order."""
        keys = (f"_read != '{Read.LATE}'", "_event", rank_of(self.sources), "_seq")
        return tuple(F.expr(key) for key in keys)


def _new_rows(context: BatchContext) -> NewRows:
    """The new rows, as the intake saw them."""
    seen = context.numbers
    n_late = seen.get(Read.LATE, 0)
    return NewRows(context.stats.live, n_late, seen[_FIRST_CAME], seen[_LAST_CAME])


def _read(frontier: Frontier) -> str:
    """How a row is read that is not late, as SQL; null if it is to wait."""
    merge_us, frontier_us = frontier.merge_us, frontier.frontier_us
    ready = f"{EVENT_US} <= {runtime_sql(FIRST_US if merge_us is None else merge_us)}"
    slack = f"{EVENT_US} <= {runtime_sql(FIRST_US if frontier_us is None else frontier_us)}"
    return f"CASE WHEN {ready} THEN '{Read.READY}' WHEN {slack} THEN '{Read.SLACK}' END"


def _before(position: Key, rank: str) -> str:
    """Whether a row lies before a place in the total order, as SQL."""
    us, its_rank, seq = position
    place = f"named_struct('us', {us}L, 'rank', {its_rank}L, 'seq', {seq}L)"
    key = f"named_struct('us', {EVENT_US}, 'rank', CAST({rank} AS BIGINT), 'seq', _seq)"
    return f"({EVENT_US} <= {runtime_sql(us)} AND {key} < {place})"


def _before_now(terms: MergeTerms, context: BatchContext) -> MergeState:
    """The state; for a rule that another merge leads, with what that one decided."""
    state = MergeState.model_validate(context.state)
    if not isinstance(terms.rule, Shared) or terms.rule.decides:
        return state
    return state.model_copy(update={"rule": context.leading.get("rule", {})})


def _hearing(terms: MergeTerms, context: BatchContext) -> MergeTerms:
    """The terms, the rule told what the merges before saw."""
    if not isinstance(terms.rule, Shared):
        return terms
    return replace(terms, rule=terms.rule.hearing(context.heard))


def _heard(terms: MergeTerms, after: MergeState, context: BatchContext) -> dict[str, Seen]:
    """What the merge that decides is to know of this one and of those before it."""
    rule = terms.rule
    if not isinstance(rule, Shared) or rule.decides:
        return {}
    return {**context.heard, rule.name: Seen(**after.rule[SEEN])}


def _held_by_clock(terms: MergeTerms, context: BatchContext) -> MergeTerms:
    """The terms, with the bound on holding that a deadline leaves, unless one was given."""
    if terms.hold_at_most_us is not None or not isinstance(terms.rule, Tuned | Shared):
        return terms
    batch_us = 0 if context.last is None else context.now_us - context.last.started_us
    return replace(terms, hold_at_most_us=terms.rule.hold_us(batch_us))


def _seen(context: BatchContext, before: MergeState) -> Seen:
    """What the batch shows the slack rule, and how long what was read before took.

    That is until it was out, or until the batch began that passed it on to another merge. The first
    batches of a process are slow for a reason of their own: Java is warming up.
    """
    lateness = context.numbers.get("lateness")
    several = lateness if isinstance(lateness, list) else [lateness]
    late_us = tuple(us for us in several if us is not None)
    if context.last is None or before.arrived_us is None or context.batch.n_run < WARM_UP:
        return Seen(context.stats.live, late_us)
    until_us = context.last.started_us if context.passes_on else context.last.emitted_us
    return Seen(context.stats.live, late_us, max(until_us - before.arrived_us, 0))


def _decisions(before: MergeState, after: MergeState) -> tuple[Decision, ...]:
    """The frontier; and the slack with its reason, if a tuner has changed it."""
    values = after.frontier.model_dump(exclude={"why"})
    frontier = Decision(stage="merge", what="frontier", why=in_words(after.frontier), values=values)
    changed = after.frontier.slack_us != before.frontier.slack_us
    if not changed or TUNING not in after.rule:
        return (frontier,)
    tuning = tuning_of(after.rule)
    values = tuning.model_dump(exclude={"why"})
    return frontier, Decision(stage="merge", what="slack", why=tuning.why, values=values)


def _result(before: MergeState, after: MergeState, counts: Numbers) -> StageResult:
    """What a batch came to, once its rows are counted."""
    state = _state(after, counts)
    return StageResult(
        state=state.model_dump(mode="json"),
        fates=Fates(released=sum(counts[mark] for mark in Read), held=counts["held"]),
        report=_numbers(after.frontier, counts),
        decisions=_decisions(before, after),
        passed=Passed(
            last_us=None if state.position is None else state.position[0],
            oldest_late_us=counts["oldest_late"],
        ),
    )


def _state(after: MergeState, counts: Numbers) -> MergeState:
    last = after.position if counts["last"] is None else tuple(counts["last"])
    held = {"position": last, "n_held": counts["held"]}
    held |= {name: counts[name] for name in ("held_us", "held_arrived_us")}
    read = {
        "n_read": sum(counts[mark] for mark in Read),
        "n_slack": counts[Read.SLACK],
        "arrived_us": counts["arrived_us"],
    }
    return after.model_copy(update=held | read)


def _numbers(frontier: Frontier, counts: Numbers) -> Numbers:
    slack_s = None if frontier.slack_us is None else frontier.slack_us / 1e6
    read = {name: counts[name] for name in (*Read, "held")}
    return {"slack_s": slack_s, "oldest_late_us": counts["oldest_late"]} | read
