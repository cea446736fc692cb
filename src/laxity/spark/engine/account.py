"""Settle a batch's account: what became of every row, at every stage.

Each stage accounts for what enters it: entered = released + held + shed + sampled out + late +
dead. What it released it passed on, or took to make other rows of (`.apply`, a join). The whole is
the chain: what one stage passes on is what enters the next, where the engine counts that on the
way, and what the last passes on is what was written. No row is read for it once more.

The whole follows a row until a stage makes others of it. Where those enter a stage that is counted,
or another branch, they count as rows in once more (`made` of them): a stage accounts for every row
it holds or rejects, wherever it stands.

Rows that are rejected are counted as they are written to their tables, apart from what the stages
say of them. So a row that gets lost between reading and writing, or in a stage, breaks a sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from laxity.core.ledger import Fates, Ledger
from laxity.errors import ContractError
from laxity.spark.engine.branch import BranchResult, Step
from laxity.spark.storage.rejected_rows import Posted

NOTHING = Fates()


@dataclass(frozen=True)
class Accounts:
    """What became of the rows of a batch: in the whole, and in each stage by its label."""

    whole: Fates
    stages: Mapping[str, Fates]


def settled(
    results: Sequence[BranchResult], held: Mapping[str, int], posted: Posted, n_results: int
) -> Accounts:
    """The accounts of a batch once all is written.

    `held` are the rows that each stage held before, `n_results` how many were written.
    """
    whole, stages = NOTHING, dict[str, Fates]()
    passed: dict[str, int] = {}  # by branches that pass on the very rows that came in
    for result in results:
        followed = _Followed(result, passed, held)
        whole = _sum(whole, followed.intake())
        for step in result.steps:
            fates, entered = followed.through(step)
            whole = _sum(whole, entered)
            if fates is not None:
                stages[step.label] = fates
        if result is results[-1]:
            whole = _sum(whole, followed.out(n_results))
        elif followed.alive is not None:
            passed[result.branch.name] = followed.alive
    rejected = {"late_rejected": posted.late(), "dead": posted.dead()}
    return Accounts(whole.model_copy(update=rejected), stages)


def after(before: Mapping[str, Ledger], accounts: Accounts) -> dict[str, Ledger]:
    """The ledgers of all stages once a batch is added, each of which adds up."""
    return dict(before) | {
        label: before.get(label, Ledger()).after(fates).check(f"stage {label}")
        for label, fates in accounts.stages.items()
    }


@dataclass
class _Followed:
    """The rows of a branch on their way through it; `alive` are those that still are followed."""

    result: BranchResult
    passed: Mapping[str, int]
    held: Mapping[str, int]
    alive: int | None = None
    made: bool = False  # whether the stage before made other rows

    def intake(self) -> Fates:
        """What comes in; rows that another branch only passes on are in the account already."""
        came, names = self.result.intake.stats.came, {b.name for b in self.result.branch.before}
        self.alive = self.result.intake.stats.live
        for name in names & self.passed.keys():
            _same(f"branch {name}", self.passed[name], self.result.branch.name, came[name])
        new = {name: n for name, n in came.items() if name not in self.passed}
        made = sum(n for name, n in new.items() if name in names)
        return Fates(rows_in=sum(new.values()), made=made)

    def through(self, step: Step) -> tuple[Fates | None, Fates]:
        """What a stage did with the rows that entered it; and what that is of the whole."""
        whole, given = NOTHING, step.result.fates
        if self.made:
            entered = step.n_rows
            if entered is None and given is not None:
                entered = _accounted(given) - self.held.get(step.label, 0)
            whole = Fates(rows_in=entered or 0, made=entered or 0)
        else:
            _same("the stage before", self.alive, step.label, step.n_rows)
            entered = self.alive
        self.made = step.stage.makes_rows
        if entered is None:
            self.alive = None
            return None, whole
        fates = (given or Fates(released=entered)).model_copy(update={"rows_in": entered})
        self.alive = None if self.made else fates.released
        kept = {"held": fates.held, "shed": fates.shed, "sampled_out": fates.sampled_out}
        released = fates.released if self.made else 0
        return fates, _sum(whole, Fates(released=released, **kept))

    def out(self, n_results: int) -> Fates:
        """What leaves the query: the results, if they are rows that came in."""
        if self.alive is None:
            return NOTHING
        if n_results != self.alive:
            raise ContractError(
                f"{self.alive} rows were released and {n_results} written; nothing was committed, "
                "so the batch can be run again"
            )
        return Fates(released=self.alive)


def _same(one: str, n_passed: int | None, other: str, n_entered: int | None) -> None:
    """What is passed on must enter; where nobody counts nothing is known."""
    if None not in (n_passed, n_entered) and n_passed != n_entered:
        raise ContractError(
            f"{one} passed on {n_passed} rows and {n_entered} entered {other}; nothing was "
            "committed, so the batch can be run again once the stage that miscounts is mended"
        )


def _accounted(fates: Fates) -> int:
    return Ledger(**fates.model_dump()).accounted


def _sum(one: Fates, other: Fates) -> Fates:
    return Fates(**{name: getattr(one, name) + getattr(other, name) for name in Fates.model_fields})
