"""Typed reads of a stranger's JSON; whatever has the wrong type is absent, never an exception."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

LARGEST_NUMBER = 1e15  # beyond it no count, size or duration of a run is believable
LARGEST_COUNT = 2**31 - 1  # more tokens or slots than any context holds, and what a column takes
DEEPEST_NESTING = 32


def parsed(text: str | bytes) -> Any:
    """The JSON value of `text`, or None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` where it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """`value` where it is an array, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def number(value: Any) -> float | None:
    """A finite, believable number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= LARGEST_NUMBER else None


def count(value: Any) -> int | None:
    """A whole number that is not negative; 3.0 counts, 3.5 does not."""
    amount = number(value)
    if amount is None or amount > LARGEST_COUNT or not amount.is_integer():
        return None
    return int(amount)


def flag(value: Any) -> bool | None:
    """A boolean and nothing that merely looks like one."""
    return value if isinstance(value, bool) else None


def text(value: Any) -> str:
    """A string as it came, else the empty one."""
    return value if isinstance(value, str) else ""


def shown(value: Any, limit: int = 200) -> str | None:
    """A string fit to store and show: cut, one that every database and encoder accepts."""
    return plain(value[:limit]) if isinstance(value, str) else None


def plain(value: str) -> str:
    """`value` without what breaks storage: NUL and lone surrogates become U+FFFD."""
    pairs_joined = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return pairs_joined.replace("\x00", "\ufffd")


def storable(value: Any, depth: int = 0) -> Any:
    """A copy that strict JSON can hold: NaN and infinity as words, strings plain, depth bounded."""
    if depth > DEEPEST_NESTING:
        return None
    if isinstance(value, Mapping):
        return {plain(str(key)): storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, int | float) or value is None:
        return value
    return plain(str(value))
