"""How a source fared at a look: what is kept of it, and when it is told; it asks nobody.

Who shows it reads `jobs.store.source_health`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Engine

from jobs.db import writing
from jobs.sightings import SourceStateRow
from jobs.store.source_health import KEY
from jobs.store.source_states import lock_source_state
from scout.github.base import Happening
from scout.watch import Summary, Trouble

DEGRADED_AFTER = 3
"""Rounds in a row in which a source had no answer at all before we say so."""
DEGRADED_SINCE = "degraded_since"
"""What makes two failures of one source two: the moment since when it had no answer."""


@dataclass
class Tally:
    """How one source fared in one round."""

    good: int = 0
    bad: int = 0
    status: int | None = None
    limited: bool = False
    failed: list[tuple[str, str]] = field(default_factory=list)

    def fail(self, place: str, reason: str, *, status: int | None, limited: bool) -> None:
        """One place had no answer."""
        self.bad += 1
        self.status = status
        self.limited = self.limited or limited
        self.failed.append((place, reason))

    @property
    def reasons(self) -> list[str]:
        """Each place with its reason, as a line."""
        return [f"{place}: {reason}" for place, reason in self.failed]


def judge(
    state: SourceStateRow,
    source: str,
    tally: Tally,
    *,
    advise: Callable[[str], str],
    retry_at: datetime | None,
    now: datetime,
) -> list[Happening]:
    """Keep how it fared in its row, held by the caller; the event where it got worse or better."""
    degraded = bool(state.cursor.get("degraded"))
    silent = tally.bad > 0 and tally.good == 0
    state.failures = state.failures + 1 if silent else 0
    state.status = tally.status
    worse = tally.limited or state.failures >= DEGRADED_AFTER
    failed = [Trouble(place, why, advise(why)) for place, why in tally.failed]
    still = worse or (degraded and silent)
    since = state.cursor.get(DEGRADED_SINCE) if degraded else None
    since = since or now.isoformat()
    state.cursor = fared(state.cursor, failed, degraded=still, now=now)
    state.cursor[DEGRADED_SINCE] = since if still else None
    if still == degraded:
        return []
    word = "degraded" if worse else "recovered"
    why = tally.failed[0][1] if worse and tally.failed else ""
    facts = {
        "status": tally.status,
        "retry_at": retry_at.isoformat() if worse and retry_at else None,
    }
    return [
        Happening(
            "source_degraded" if worse else "source_recovered",
            f"src:{source}:{word}:{since}",
            f"{source} {word}" + (f": {why}" if why else ""),
            facts,
            now,
        )
    ]


def fared(
    before: Mapping[str, Any], failed: Sequence[Trouble], *, degraded: bool, now: datetime
) -> dict[str, Any]:
    """The facts to keep; "since" stays from the first look of a row that was not well."""
    unwell = degraded or bool(failed)
    first = failed[0] if failed else None
    return {
        **before,
        "degraded": degraded,
        "failing": len(failed),
        "since": (before.get("since") or now.isoformat()) if unwell else None,
        "why": f"{first.engine}: {first.message}" if first else before.get("why") if unwell else "",
        "advice": first.advice if first else before.get("advice") if unwell else "",
        "looked_at": now.isoformat(),
    }


def note_round(database: Engine, source: str, found: Summary, *, now: datetime) -> None:
    """Keep how a round over engines or forks went; one that looked at nothing says nothing."""
    if not found.looked and not found.troubles:
        return
    with writing(database) as session:
        state = lock_source_state(session, f"{KEY}{source}", now)
        degraded = bool(found.troubles) and not found.looked
        state.cursor = fared(state.cursor, found.troubles, degraded=degraded, now=now)
