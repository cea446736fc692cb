"""What a pipeline promises and how it is set, every default included.

The contract is built once, printed at start and compared with the checkpoint's: there is no
setting that is not in it.
"""

from pydantic import BaseModel, ConfigDict

from laxity.durations import show_us


class SourceTerms(BaseModel):
    """How one source is read."""

    model_config = ConfigDict(frozen=True)

    name: str
    event_time: str
    arrival: str
    sequence: str
    idle_after_us: int | None
    max_future_us: int
    unique_times: bool = False

    def __str__(self) -> str:
        times = "never" if self.unique_times else "may be"
        idle = "never" if self.idle_after_us is None else f"after {show_us(self.idle_after_us)}"
        return (
            f"event {self.event_time}, arrival {self.arrival}, sequence {self.sequence}, "
            f"idle {idle}, future at most {show_us(self.max_future_us)}, times {times} repeated"
        )


class StageTerms(BaseModel):
    """What one stage does."""

    model_config = ConfigDict(frozen=True)

    name: str
    terms: str


class PromiseTerms(BaseModel):
    """Something that a batch can keep or break: what is seen must stay within the bound."""

    model_config = ConfigDict(frozen=True)

    name: str
    bound: float
    unit: str = "s"

    def __str__(self) -> str:
        return f"{self.name} ≤ {self.bound:g} {self.unit}"


class Contract(BaseModel):
    """The effective terms of one running pipeline."""

    model_config = ConfigDict(frozen=True)

    pipeline: str
    sources: tuple[SourceTerms, ...]
    stages: tuple[StageTerms, ...]
    sink: str
    delivery: str
    trigger: str
    checkpoint: str
    deadline_us: int | None
    promises: tuple[PromiseTerms, ...] = ()

    def __str__(self) -> str:
        """The contract as a person reads it, one term a line."""
        deadline = "none" if self.deadline_us is None else show_us(self.deadline_us)
        lines = [
            *((f"source {source.name}", str(source)) for source in self.sources),
            *((f"stage {stage.name}", stage.terms) for stage in self.stages),
            ("sink", f"{self.sink}, {self.delivery}"),
            ("trigger", self.trigger),
            ("deadline", f"{deadline}, reported for every batch"),
            *(("promise", f"{one}, reported for every batch") for one in self.promises),
            ("ledger", "every row accounted for at every commit, or the query stops"),
            ("checkpoint", self.checkpoint),
        ]
        width = max(len(term) for term, _ in lines)
        body = "\n".join(f"  {term:<{width}}  {text}" for term, text in lines)
        return f"laxity contract of {self.pipeline}\n{body}"
