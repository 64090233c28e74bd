"""Where a value of TOML text stands, which the parser does not tell; it changes nothing."""

from __future__ import annotations

import bisect
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from jobs.errors import UsageError

Path = Sequence[str | int]


class Lines:
    """The lines of a text that parses as a whole: each cut of it that parses too either holds a
    value or not. No cut is parsed twice."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._whole = tomllib.loads(text)
        self.parsed: dict[int, Any] = {}

    def of(self, path: Path) -> int:
        """The line, counted from 1, on which the statement giving `path` begins.

        A path that is not there (a missing key) gives the line of the nearest table around it.
        """
        known = list(path)
        while known and not _holds(self._whole, known):
            known.pop()
        if not known:
            return 1
        counts = range(len(self._lines) + 1)
        return bisect.bisect_left(counts, True, key=lambda count: _holds(self._cut(count), known))

    def _cut(self, count: int) -> Any:
        """The shortest cut of at least `count` lines that parses."""
        if count not in self.parsed:
            self.parsed[count] = self._parsed(count)
        return self.parsed[count]

    def _parsed(self, count: int) -> Any:
        for end in range(count, len(self._lines)):
            try:
                return tomllib.loads("\n".join(self._lines[:end]))
            except tomllib.TOMLDecodeError:
                continue
        return self._whole


def _holds(value: Any, path: Path) -> bool:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def syntax_fault(text: str, name: str, error: Exception) -> UsageError:
    """What to raise for a text that is no TOML: the line, and what the parser said."""
    says = "tables are nested too deep" if isinstance(error, RecursionError) else str(error)
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", says)
    line = (found and found[1]) or (text.count("\n") + 1 if found else 1)
    says = says[: found.start()] if found else says
    return UsageError(
        f"{name}, line {line}: not TOML: {says}", advice="quote texts, and close what is open"
    )
