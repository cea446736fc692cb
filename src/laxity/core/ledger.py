"""The account of every row.

At every commit: **rows in = released + held + shed + sampled out + late-rejected + dead**. All are
totals since the pipeline began, except `held`, which is how many rows wait right now. The numbers
are counted apart from each other, so a row that is lost or doubled breaks the sum.
"""

from typing import Self

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from laxity.errors import ContractError


class Fates(BaseModel):
    """What became of rows: of one micro-batch, or since the beginning.

    `made`: those of the rows in that a stage made and another took in.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows_in: NonNegativeInt = 0
    released: NonNegativeInt = 0
    held: NonNegativeInt = 0
    shed: NonNegativeInt = 0
    sampled_out: NonNegativeInt = 0
    late_rejected: NonNegativeInt = 0
    dead: NonNegativeInt = 0
    made: NonNegativeInt = 0


class Ledger(Fates):
    """Fates since the beginning, with the identity they must keep.

    >>> ledger = Ledger().after(Fates(rows_in=10, released=6, held=3, dead=1))
    >>> ledger = ledger.after(Fates(rows_in=2, released=5))
    >>> ledger.check().released
    11
    """

    def after(self, batch: Fates) -> Self:
        """The ledger once a batch is added; `batch.held` replaces what was held before."""
        totals = {
            name: getattr(self, name) + getattr(batch, name) for name in Fates.model_fields
        } | {"held": batch.held}
        return type(self)(**totals)

    @property
    def accounted(self) -> int:
        """The rows whose fate is known."""
        return (
            self.released
            + self.held
            + self.shed
            + self.sampled_out
            + self.late_rejected
            + self.dead
        )

    def check(self, whose: str = "the batch") -> Self:
        """The ledger itself if it adds up, else a ContractError with the numbers."""
        if self.rows_in != self.accounted:
            parts = " + ".join(
                f"{name} {getattr(self, name)}"
                for name in Fates.model_fields
                if name not in ("rows_in", "made")
            )
            raise ContractError(
                f"the ledger of {whose} does not add up: {self.rows_in} rows in, "
                f"{self.accounted} accounted for ({parts}); nothing was committed, so the "
                "batch can be run again once the stage that loses or doubles rows is mended"
            )
        return self
