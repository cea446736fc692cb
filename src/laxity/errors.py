"""What can go wrong, in one tree.

LaxityError
├── ConfigError     what was asked for cannot be: the value and the cure are in the message
├── ContractError   a promise that must never break did break (a ledger that does not add up)
├── StateError      a checkpoint is not what it should be, or belongs to someone else
└── EngineError     Spark, Java or the file system refused

ContractWarning     a promise is weaker than it could be, and the user should know
"""


class LaxityError(Exception):
    """Base of every error Laxity raises on purpose."""


class ConfigError(LaxityError):
    """What was asked for cannot be done; raised before anything starts."""


class ContractError(LaxityError):
    """A promise that must never break did break; the query stops."""


class StateError(LaxityError):
    """A checkpoint is not what it should be, or belongs to someone else."""


class EngineError(LaxityError):
    """Spark, Java or the file system refused."""


class ContractWarning(UserWarning):
    """A promise is weaker than it could be."""
