"""Checkpoints of format 7: tables had no stage in their names, and segments not their folders."""

from typing import Any

FORMAT = 7
_OWNERS = {
    "held": "merge",
    "window": "join",
    **dict.fromkeys(("recent", "joined", "contexts", "holes", "waiting", "given"), "revise"),
}


def upgraded(value: dict[str, Any]) -> dict[str, Any]:
    """A commit, or whose checkpoint it is, as it is written today.

    >>> old = {"segments": [{"batch_id": 3}], "within": None, "columns": {}}
    >>> new = upgraded({"format": 7, "tables": {"land-held": old}, "memories": {}})
    >>> new["tables"]["land-merge-held"]["segments"]
    [{'batch_id': 3, 'at': 'state/land-held/3', 'column': None}]
    """
    if "tables" not in value:
        return value
    held = {label: _held(state) for label, state in value["memories"].items()}
    return value | {
        "tables": {_name(n): _table(n, table) for n, table in value["tables"].items()},
        "accounts": {label: {"rows_in": n, "held": n} for label, n in held.items() if n},
    }


def _held(state: dict[str, Any]) -> int:
    """How many rows a stage held: the account of each begins with them."""
    return int(state.get("n_held") or state.get("n_waiting") or 0)


def _name(name: str) -> str:
    branch, dash, own = name.rpartition("-")
    return f"{branch}{dash}{_OWNERS[own]}-{own}" if own in _OWNERS else name


def _table(name: str, table: dict[str, Any]) -> dict[str, Any]:
    folder, column = table["within"] or name, name if table["within"] else None
    segments = [
        segment | {"at": f"state/{folder}/{segment['batch_id']}", "column": column}
        for segment in table["segments"]
    ]
    return table | {"segments": segments}
