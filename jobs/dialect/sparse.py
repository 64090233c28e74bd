"""Which paths of a repository a recipe's sparse patterns leave in; only the forms recipes use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

EVERYTHING = "/*"


def is_used(path: str, patterns: Sequence[str]) -> bool:
    """Whether git checks that path out: the last pattern that fits decides, as git has it.

    Understood are `/*`, `/FOLDER/` and `*.ENDING`, each with or without `!`.
    """
    used = not patterns
    for pattern in patterns:
        wanted = pattern.removeprefix("!")
        if _fits(path, wanted):
            used = wanted == pattern
    return used


def none_used(paths: Iterable[str], patterns: Sequence[str]) -> bool:
    """Whether a change of these paths alone can change nothing that is built."""
    return not any(is_used(path, patterns) for path in paths)


def _fits(path: str, pattern: str) -> bool:
    if pattern == EVERYTHING:
        return True
    if pattern.startswith("*."):
        return any(part.endswith(pattern[1:]) for part in path.split("/"))
    if pattern.startswith("/") and pattern.endswith("/"):
        return path.startswith(pattern[1:])
    raise ValueError(f"not a form of pattern that recipes use: {pattern!r}")
