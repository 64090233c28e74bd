"""The end of what an attempt wrote; a log that is not there has none, and none is changed."""

from __future__ import annotations

from pathlib import Path

END_BYTES = 64 * 2**10
MOST_LINES = 50


def last_lines(log: Path) -> tuple[str, ...]:
    """At most `MOST_LINES` lines from the end of the file."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - END_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(text.splitlines()[-MOST_LINES:])
