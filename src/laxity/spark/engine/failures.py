"""Failures of the engine, in words that name the cure."""

from laxity.errors import EngineError, LaxityError

_FULL = ("No space left on device", "Disk quota exceeded", "File too large")


def explained(error: Exception, uri: str, batch_id: int) -> Exception:
    """The error as the user should see it; one that is clear already stays as it is."""
    text = str(error)
    if not isinstance(error, LaxityError) and any(sign in text for sign in _FULL):
        return EngineError(
            f"no space left while writing batch {batch_id} (checkpoint {uri}): free some and start "
            "the query again. Nothing committed was harmed, and the batch will be run again"
        )
    return error
