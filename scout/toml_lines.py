"""Finds the line of a value in TOML text, which the parser does not tell; it changes nothing."""

from __future__ import annotations

import bisect
import tomllib
from collections.abc import Sequence
from typing import Any

Path = Sequence[str | int]


def line_of(text: str, path: Path) -> int:
    """The line, counted from 1, on which the statement giving `path` begins.

    A path that is not there (a missing key) gives the line of the nearest table around it.
    `text` must parse as a whole: each cut of it that parses too either holds the path or not.
    """
    whole = tomllib.loads(text)
    known = list(path)
    while known and not _holds(whole, known):
        known.pop()
    if not known:
        return 1
    lines = text.split("\n")
    return bisect.bisect_left(
        range(len(lines) + 1), True, key=lambda count: _holds(_cut(lines, count), known)
    )


def _cut(lines: Sequence[str], count: int) -> Any:
    """The shortest cut of at least `count` lines that parses."""
    for end in range(count, len(lines)):
        try:
            return tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
    return tomllib.loads("\n".join(lines))


def _holds(value: Any, path: Path) -> bool:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
