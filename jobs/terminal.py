"""What a terminal is shown: strangers' text made harmless, counts in words, JSON; pure."""

from __future__ import annotations

import json
import re
from datetime import datetime

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[@-Z\\^_])"
)


def printable(text: str) -> str:
    """The text without escape sequences, control characters and invisible marks."""
    return "".join(c for c in _SEQUENCE.sub("", text) if c in "\n\t" or c.isprintable())


def one_line(text: str) -> str:
    """The same on one line, so that no stranger's word can pass for a line of ours."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def sound(text: str) -> str:
    """Without the halves of characters that an argument may hold and no text does."""
    return text.encode("utf-8", "replace").decode("utf-8")


def counted(count: int, noun: str, nouns: str = "") -> str:
    """`1 run`, `3 runs`; `nouns` where an s alone makes no plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {nouns or f'{noun}s'}"


def json_text(value: object) -> str:
    """Strict JSON as every command prints it; moments as ISO 8601 writes them, with a T."""
    return json.dumps(value, indent=2, default=_plain, allow_nan=False)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
