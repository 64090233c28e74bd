"""Where laid out text goes: as wide as a terminal or COLUMNS says, else uncut; it words nothing."""

from __future__ import annotations

import os

from rich.console import Console

UNCUT_COLUMNS = 100_000
"""Wider than any line: a pipe or a file gets every letter of it."""


def screen(*, stderr: bool = False) -> Console:
    """Standard output as rich prints to it; uncut where no terminal is and nobody named a width."""
    console = Console(stderr=stderr)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        return console
    return Console(stderr=stderr, width=UNCUT_COLUMNS)
