"""Merge on Spark: rows wait in a state table until the frontier has passed them.

`laxity.core.merge` decides, once a batch and from numbers the intake gathered in its pass over the
rows; here the decision becomes a filter. Late rows are released at once, marked. Held rows stay in
the table `held`, which is appended to and expired by event time, never rewritten whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from laxity.core.ledger import Fates
from laxity.core.merge import FIRST_US, Key, MergeState, MergeTerms, Read, decide, in_words
from laxity.core.progress import Frontier
from laxity.core.report import Decision
from laxity.core.slack import Seen
from laxity.core.tuned import SEEN, Shared, Tuned
from laxity.core.tuner import TUNING, tuning_of
from laxity.durations import show_us
from laxity.spark.engine.stage import Outcome, Stage, Turn
from laxity.spark.merging.counts import NOTHING, MergeCounts, NewRows, Numbers
from laxity.spark.rows.columns import CAME, EVENT_US, RANK, rank_of
from laxity.spark.rows.partitioning import coalesced, in_order
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

    def observes(self, memory: dict[str, Any]) -> Sequence[Column]:
        """Which rows are late, how late, and when the first and the last of all came."""
        before = MergeState.model_validate(memory)
        late = *self._late(before.position), *self._lateness(before.frontier.newest_us)
        came_us = f"IF(_dead IS NULL, unix_micros({self.came}), NULL)"
        came = (f"min({came_us}) AS {_FIRST_CAME}", f"max({came_us}) AS {_LAST_CAME}")
        return *late, *map(F.expr, came)

    def _late(self, position: Key | None) -> Sequence[Column]:
        """How many rows are late, and the oldest of them; rows that were held never are."""
        if position is None:
            return ()
        late = f"(_dead IS NULL AND {_before(position, RANK)})"
        oldest = f"min(IF({late}, {EVENT_US}, NULL)) AS oldest_late"
        return F.expr(f"count_if({late}) AS {Read.LATE}"), F.expr(oldest)

    def _lateness(self, newest_us: int | None) -> Sequence[Column]:
        """How far the rows lie behind, as far as the slack rule looks."""
        grid = self.rule.rule.grid
        if newest_us is None or not grid:
            return ()
        late_us = f"greatest({runtime_sql(newest_us)} - {EVENT_US}, 0L)"
        live_us = F.expr(f"IF(_dead IS NULL, {late_us}, NULL)")
        if grid == (1.0,):
            return (F.array(F.max(live_us)).alias("lateness"),)
        return (F.percentile_approx(live_us, list(grid), ACCURACY).alias("lateness"),)

    def __call__(self, rows: DataFrame, turn: Turn) -> Outcome:
        """Hold what is new, release what the frontier has passed."""
        before = _before_now(self.rule, turn)
        terms = _held_by_clock(_hearing(self.rule, turn), turn)
        after = decide(terms, before, turn.sources, _seen(turn, before), turn.now_us)
        frontier = after.frontier
        if not turn.intake.live and frontier.frontier_us == before.frontier.frontier_us:
            return replace(self._nothing_new(rows, before, after), heard=_heard(terms, after, turn))
        read, n_rows = _read(frontier), turn.intake.live + before.n_held
        tally = MergeCounts(self.sources, self.came, _fresh(turn), before, frontier)
        waiting = rows.withColumn("_read", F.expr(self._marked(read, before.position)))
        new = self._hold(rows, waiting, turn, tally)
        held = turn.tables.read(HELD)
        old: Callable[[], Numbers] = partial(dict, NOTHING)
        if held is not None:
            held = held.withColumn("_read", F.expr(read))
            waiting = waiting.unionByName(held)
            old = tally.waited(held, turn.background)
        released = coalesced(waiting, n_rows).where("_read IS NOT NULL")
        if self.came == CAME:
            released = released.drop(CAME)

        @cache
        def counts() -> Numbers:
            return _NONE_LATE | turn.seen | tally.together(new(), old(), held)

        order = self._order()
        span_us = before.frontier.frontier_us, frontier.frontier_us
        return Outcome(
            released.sortWithinPartitions(*order),
            memory=lambda: _remembered(after, counts()),
            fates=lambda: _fates(counts()),
            numbers=lambda: _numbers(frontier, counts()),
            decisions=_decisions(before, after),
            empty=frontier.frontier_us is None,
            whole=True,
            ordered=lambda: in_order(released, order, n_rows, span_us),
            heard=_heard(terms, after, turn),
        )

    def _hold(
        self, rows: DataFrame, marked: DataFrame, turn: Turn, tally: MergeCounts
    ) -> Callable[[], Numbers]:
        """Keep the new rows that have to wait, forget the old ones that need not any more.

        What comes back gives the counts of the new rows, once they are written.
        """
        newest = [one.newest_us for one in turn.intake.heard.values() if one.newest_us is not None]
        frontier_us = tally.frontier.frontier_us
        if newest and (frontier_us is None or max(newest) > frontier_us):
            still, new = tally.waiting(marked)
            turn.tables.append(HELD, rows, expire_by=EVENT_US, newest=max(newest), made=still)
            turn.tables.begin(HELD, turn.background)
        else:
            new = turn.background.begin(lambda: tally.none_waits(marked))
        if frontier_us is not None:
            turn.tables.expire(HELD, frontier_us + 1)
        return new

    def _nothing_new(self, rows: DataFrame, before: MergeState, after: MergeState) -> Outcome:
        """No row came and the frontier stands: nothing to do, and no job to find that out."""
        still = {"held": after.n_held, "held_us": after.held_us}
        still |= {"held_arrived_us": after.held_arrived_us}
        counts = NOTHING | _NONE_LATE | still
        return Outcome(
            rows.withColumn("_read", F.lit("")).where("false").drop(CAME),
            memory=lambda: _remembered(after, counts),
            fates=lambda: _fates(counts),
            numbers=lambda: _numbers(after.frontier, counts),
            decisions=_decisions(before, after),
            empty=True,
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


def _fresh(turn: Turn) -> NewRows:
    """The new rows, as the intake saw them."""
    seen = turn.seen
    n_late = seen.get(Read.LATE, 0)
    return NewRows(turn.intake.live, n_late, seen[_FIRST_CAME], seen[_LAST_CAME])


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


def _before_now(terms: MergeTerms, turn: Turn) -> MergeState:
    """The memory; for a rule that another merge leads, with what that one decided."""
    memory = MergeState.model_validate(turn.memory)
    if not isinstance(terms.rule, Shared) or terms.rule.decides:
        return memory
    return memory.model_copy(update={"rule": turn.leads.get("rule", {})})


def _hearing(terms: MergeTerms, turn: Turn) -> MergeTerms:
    """The terms, the rule told what the merges before saw."""
    if not isinstance(terms.rule, Shared):
        return terms
    return replace(terms, rule=terms.rule.hearing(turn.heard))


def _heard(terms: MergeTerms, after: MergeState, turn: Turn) -> dict[str, Seen]:
    """What the merge that decides is to know of this one and of those before it."""
    rule = terms.rule
    if not isinstance(rule, Shared) or rule.decides:
        return {}
    return {**turn.heard, rule.name: Seen(**after.rule[SEEN])}


def _held_by_clock(terms: MergeTerms, turn: Turn) -> MergeTerms:
    """The terms, with the bound on holding that a deadline leaves, unless one was given."""
    if terms.hold_at_most_us is not None or not isinstance(terms.rule, Tuned | Shared):
        return terms
    batch_us = 0 if turn.last is None else turn.now_us - turn.last.started_us
    return replace(terms, hold_at_most_us=terms.rule.hold_us(batch_us))


def _seen(turn: Turn, before: MergeState) -> Seen:
    """What the batch shows the slack rule, and how long what was read before took.

    That is until it was out, or until the batch began that passed it on to another merge. The first
    batches of a process are slow for a reason of their own: Java is warming up.
    """
    late_us = tuple(us for us in turn.seen.get("lateness") or () if us is not None)
    if turn.last is None or before.arrived_us is None or turn.n_run < WARM_UP:
        return Seen(turn.intake.live, late_us)
    until_us = turn.last.started_us if turn.passes_on else turn.last.emitted_us
    return Seen(turn.intake.live, late_us, max(until_us - before.arrived_us, 0))


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


def _remembered(after: MergeState, counts: dict[str, Any]) -> dict[str, Any]:
    last = after.position if counts["last"] is None else tuple(counts["last"])
    held = {"position": last, "n_held": counts["held"]}
    held |= {name: counts[name] for name in ("held_us", "held_arrived_us")}
    read = {
        "n_read": sum(counts[mark] for mark in Read),
        "n_slack": counts[Read.SLACK],
        "arrived_us": counts["arrived_us"],
    }
    return after.model_copy(update=held | read).model_dump(mode="json")


def _fates(counts: dict[str, Any]) -> Fates:
    return Fates(released=sum(counts[mark] for mark in Read), held=counts["held"])


def _numbers(frontier: Frontier, counts: dict[str, Any]) -> dict[str, Any]:
    slack_s = None if frontier.slack_us is None else frontier.slack_us / 1e6
    told = {name: counts[name] for name in (*Read, "held")}
    return {"slack_s": slack_s, "oldest_late_us": counts["oldest_late"]} | told
