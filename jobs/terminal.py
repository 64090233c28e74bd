"""Text of strangers as a terminal may show it: nothing that drives one, hides or reorders; pure."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[@-Z\\^_])"
)


def printable(text: str) -> str:
    """The text without escape sequences, control characters and invisible marks."""
    return "".join(c for c in _SEQUENCE.sub("", text) if c in "\n\t" or c.isprintable())
