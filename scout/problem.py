"""One thing that is wrong in a watch list; it knows no rule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, where, and what would be right."""

    path: tuple[str | int, ...]
    says: str
    advice: str = ""
