"""What a checkpoint writes down of a batch, and of whose it is; JSON, no pickle anywhere."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from laxity.core.ledger import Ledger
from laxity.core.report import Report

FORMAT = 8


class Segment(BaseModel):
    """The rows one batch wrote to a state table; `level` counts how often they were folded.

    They lie in the folder `at`, alone or, with those of other tables, in a `column` of their own.
    `newest`: the last of them is expired once the table's floor has passed it.
    """

    model_config = ConfigDict(frozen=True)

    batch_id: int
    at: str
    column: str | None = None
    level: int = 0
    newest: int | None = None


class Table(BaseModel):
    """A state table as of one commit; rows whose `expire_by` is below its floor are no more."""

    model_config = ConfigDict(frozen=True)

    columns: dict[str, Any]
    segments: tuple[Segment, ...] = ()
    expire_by: str | None = None
    floor: int | None = None


class Commit(BaseModel):
    """Everything that became durable with one batch.

    `memories` are the states of the stages, `accounts` their ledgers. `drained`: the input had
    ended, and nothing was held back.
    """

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    batch_id: int
    ledger: Ledger
    tables: dict[str, Table]
    memories: dict[str, Any]
    accounts: dict[str, Ledger] = {}
    drained: bool = False
    report: Report


class Identity(BaseModel):
    """Whose checkpoint this is: what may not change between two starts."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    id: str
    pipeline: str
    sources: tuple[str, ...]
    stages: tuple[str, ...]
