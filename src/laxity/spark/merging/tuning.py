"""What a tuned query needs of the engine: one tuner for all its merges, models in background."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from laxity.core.estimator import FitInBackground, FitNow
from laxity.core.slack import Fixed, SlackRule
from laxity.core.tuned import MERGE, Shared, Tuned
from laxity.errors import ConfigError
from laxity.spark.engine.branch import Branch
from laxity.spark.merging.merge import Merge


def merge_of(branch: Branch) -> Merge | None:
    """The merge a branch begins with, if it does."""
    first = branch.stages[0] if branch.stages else None
    return first if isinstance(first, Merge) else None


def with_rule(branch: Branch, rule: SlackRule) -> Branch:
    """The branch with another slack rule for its merge."""
    merge, *rest = branch.stages
    assert isinstance(merge, Merge)
    again = replace(merge, rule=replace(merge.rule, rule=rule))
    return replace(branch, stages=(again, *rest))


def without_slack(branch: Branch) -> Branch:
    """The merges of a query alone, none of which waits for anybody."""
    merges = branch.each(lambda one: replace(one, stages=one.stages[:1]))
    return merges.each(lambda one: with_rule(one, Fixed("0s")))


def tuned_by(branch: Branch) -> Tuned | None:
    """The rule that all merges of a query share, if it is tuned; an error if they do not."""
    merges = [merge_of(one) for one in branch.walk()]
    rules = [merge.rule.rule for merge in merges if merge is not None]
    tuned = [rule for rule in rules if isinstance(rule, Tuned)]
    if tuned and any(rule != tuned[0] for rule in rules):
        raise ConfigError(
            "a deadline is kept by all merges of a query together: give each the same lx.Tuned"
        )
    return tuned[0] if tuned else None


def shared(branch: Branch, rule: Tuned) -> Branch:
    """The query with one tuner for all its merges; each goes by the name of its branch."""
    if not branch.before:
        return with_rule(branch, rule)
    before = {operator(one): tuple(map(operator, one.before)) for one in branch.walk()}
    tuner = rule.tuner_of(before)
    return branch.each(lambda one: with_rule(one, Shared(rule, tuner, operator(one))))


def operator(branch: Branch) -> str:
    """What a branch is called in a history."""
    return branch.name or MERGE


def fitted_in_background(branch: Branch) -> tuple[Branch, Callable[[], object]]:
    """The query, with the models of its tuner made beside the batches; how to end that."""
    rule = tuned_by(branch)
    if rule is None:
        return branch, lambda: None
    if rule.fitting is not None:
        return shared(branch, rule), lambda: None
    executor = ThreadPoolExecutor(1, thread_name_prefix="laxity-tuner")
    background = replace(rule, fitting=FitInBackground(executor, FitNow(rule.seed)))
    return shared(branch, background), partial(executor.shutdown, wait=False, cancel_futures=True)
