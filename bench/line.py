"""One measured number and what it must keep."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    what: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ok(self) -> bool:
        low = self.at_least is None or self.value >= self.at_least
        return low and (self.at_most is None or self.value <= self.at_most)

    @property
    def shown(self) -> str:
        return f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:.2f}"

    @property
    def bound(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:,g}"
        return f"≤ {self.at_most:,g}" if self.at_most is not None else ""
