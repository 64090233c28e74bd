"""Where laid out text goes: a terminal by its width, all else uncut; it words nothing."""

from __future__ import annotations

from rich.console import Console

UNCUT_COLUMNS = 100_000
"""Wider than any line: a pipe or a file gets every letter of it."""


def screen(*, stderr: bool = False) -> Console:
    """Standard output as rich prints to it; nothing is wrapped or cut where no terminal is."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=UNCUT_COLUMNS)
