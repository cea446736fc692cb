"""Where a revise stands in time, from one micro-batch to the next.

`before_us` is the newest event of all batches before, `newest_us` with this one. A row behind
`before_us` is late; one more than the bound on lateness behind it is too late. Results at or before
`answered_us` are out, those up to `edge_us` come with this batch. Rows at or before `edge_us` are
not recent any more, rows before `open_us` will be too late in every batch to come, and results at
or before `final_us` never change again.
"""

from dataclasses import dataclass

from laxity.core.holes import BEGINNING
from laxity.core.revise import Shape


@dataclass(frozen=True)
class Moment:
    """The times that matter in one micro-batch; nothing came before the first.

    >>> moment = Moment(Shape.of([(2, 1), (4, 1)]), lateness_us=10, before_us=20, newest_us=25)
    >>> moment.accepted_us, moment.answered_us, moment.edge_us, moment.open_us, moment.final_us
    (10, 14, 19, 15, 9)
    """

    shape: Shape
    lateness_us: int
    before_us: int
    newest_us: int

    @property
    def span_us(self) -> int:
        """How far rows reach: the sum of the window sizes."""
        return self.shape.span_us

    @property
    def accepted_us(self) -> int:
        """The oldest event that is not too late for this batch."""
        return max(self.before_us - self.lateness_us, BEGINNING)

    @property
    def answered_us(self) -> int:
        """Results up to here were answered by the batches before."""
        return self.shape.edge_us(self.before_us)

    @property
    def edge_us(self) -> int:
        """Results up to here are answered once this batch is done."""
        return self.shape.edge_us(self.newest_us)

    @property
    def open_us(self) -> int:
        """The oldest event that can still come."""
        return self.newest_us - self.lateness_us

    @property
    def final_us(self) -> int:
        """Results up to here never change again."""
        return self.shape.final_us(self.newest_us, self.lateness_us)
