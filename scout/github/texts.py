"""Strangers' words and numbers from GitHub's JSON as values that are safe to keep and to print."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jobs.errors import UsageError
from jobs.git import repo_url

TITLE_LENGTH = 120
DESCRIPTION_LENGTH = 300
NAME_LENGTH = 200
_LARGEST_NUMBER = 2**62
_LONGEST_MOMENT = 64
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def plain(value: object, most: int = TITLE_LENGTH) -> str:
    """One short line without control, direction or invisible characters; "" for no text."""
    if not isinstance(value, str):
        return ""
    head = value[: most * 8]
    shown = "".join(" " if unicodedata.category(c) in _UNSEEN else c for c in head)
    line = " ".join(shown.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def repo_name(value: object) -> str | None:
    """The value as `owner/name` if it is one that git may be asked for."""
    if not isinstance(value, str):
        return None
    try:
        repo_url(value)
    except UsageError:
        return None
    return value


def number(value: object) -> int | None:
    """A count or an id that fits a row; GitHub sends no negative ones."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _LARGEST_NUMBER else None


def identity(value: object) -> int | None:
    """GitHub's number of a thing; none of them is 0."""
    return number(value) or None


def moment(value: object) -> datetime | None:
    """A time with its zone, in UTC; None for one that no calendar holds there."""
    if not isinstance(value, str) or len(value) > _LONGEST_MOMENT:
        return None
    try:
        found = datetime.fromisoformat(value)
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def not_after(found: datetime | None, now: datetime) -> datetime | None:
    """The time, or now where it has not come yet."""
    return None if found is None else min(found, now)


def part(item: Any, *path: str) -> Any:
    """A value deep in an item; None where any step of the way is missing or null."""
    found: Any = item
    for key in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found
