"""The words of a result file that one machine writes and another reads; it reads no file itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FORMAT = "forkscout-bench"
VERSION = 1
TWIN_KEY = "forkscout.twin"
"""A key in a GGUF header: its weights are random, its value names what it is shaped like."""

ARTIFACT, WEIGHTS, DRAFTER, MMPROJ = "<artifact>", "<weights>", "<drafter>", "<mmproj>"
"""What stands in a result where the measuring machine had a path."""


def placed(value: Any, places: Mapping[str, str]) -> Any:
    """A copy in which every path of `places` is its name, wherever it stands in a text."""
    if isinstance(value, str):
        for path, name in places.items():
            value = value.replace(path, name)
        return value
    if isinstance(value, Mapping):
        return {key: placed(item, places) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [placed(item, places) for item in value]
    return value
