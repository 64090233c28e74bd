"""When a source has stopped answering and when it answers again, told once each; asks nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from jobs.sightings import SourceStateRow
from scout.github.base import Happening

DEGRADED_AFTER = 3
"""Rounds in a row in which a source had no answer at all before we say so."""


@dataclass
class Tally:
    """How one source fared in one round."""

    good: int = 0
    bad: int = 0
    status: int | None = None
    limited: bool = False
    reasons: list[str] = field(default_factory=list)

    def fail(self, place: str, reason: str, *, status: int | None, limited: bool) -> None:
        """One place had no answer."""
        self.bad += 1
        self.status = status
        self.limited = self.limited or limited
        self.reasons.append(f"{place}: {reason}")


def judge(
    state: SourceStateRow, source: str, tally: Tally, *, retry_at: datetime | None, now: datetime
) -> Happening | None:
    """The event of a source that got worse or better; `state` is its row, held by the caller."""
    degraded = bool(state.cursor.get("degraded"))
    silent = tally.bad > 0 and tally.good == 0
    state.failures = state.failures + 1 if silent else 0
    state.status = tally.status
    worse = tally.limited or state.failures >= DEGRADED_AFTER
    if worse == degraded or (degraded and silent):
        return None
    state.cursor = {**state.cursor, "degraded": worse}
    word = "degraded" if worse else "recovered"
    why = tally.reasons[0].partition(": ")[2] if worse and tally.reasons else ""
    return Happening(
        f"source_{word}",
        f"src:{source}:{word}:{now:%Y-%m-%dT%H}",
        f"{source} {word}" + (f": {why}" if why else ""),
        {
            "status": tally.status,
            "retry_at": retry_at.isoformat() if worse and retry_at else None,
        },
        now,
    )
