"""Values as strict JSON: moments as text, no NaN, nothing private; pure."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from jobs.store.shown import Entry
from web.ranking import Board, Ranked


def plain(value: Any, clean: Callable[[str], str]) -> Any:
    """The value in JSON's own types; every text passes `clean`, a number that is none is null."""
    if isinstance(value, str):
        return clean(str(value))
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return plain(fields, clean)
    if isinstance(value, Mapping):
        return {clean(str(key)): plain(item, clean) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [plain(item, clean) for item in value]
    raise TypeError(f"no plain form for {type(value).__name__}")


def entry(value: Entry, clean: Callable[[str], str]) -> dict[str, Any]:
    """An entry with what it derives: boot medians, spread and acceptance."""
    derived = {
        "boot_medians_tps": value.boot_medians,
        "spread_tps": value.spread,
        "acceptance": value.acceptance,
    }
    return {**plain(value, clean), **plain(derived, clean)}


def boards(values: Sequence[Board], clean: Callable[[str], str]) -> list[dict[str, Any]]:
    """The leaderboard, group by group."""
    return [
        {
            "group": plain(board.group, clean),
            "entries": [_ranked(line, clean) for line in board.lines],
        }
        for board in values
    ]


def text(value: Any) -> str:
    """Strict JSON text."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, indent=2)


def _ranked(line: Ranked, clean: Callable[[str], str]) -> dict[str, Any]:
    place = {
        "rank": line.rank,
        "tied": line.tied,
        "against_leader": plain(line.against_leader, clean),
    }
    return {**place, **entry(line.entry, clean)}
