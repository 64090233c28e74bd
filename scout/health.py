"""What is kept of how a source fared at a look; who shows it reads `jobs.store.source_health`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Engine

from jobs.db import writing
from jobs.store.source_health import KEY
from jobs.store.source_states import lock_source_state
from scout.watch import Summary, Trouble


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
