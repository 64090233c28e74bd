"""How every source fares, as pages and commands show it: since when not well, what is left."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session

from jobs.sightings import SourceStateRow
from jobs.store.source_states import source_states

KEY, QUOTA, COOLDOWN, TOKEN = "source:", "quota:", "cooldown:", "token:"
WELL, PARTLY, DEGRADED, NEEDS_TOKEN = "well", "partly", "degraded", "needs a token"
TOKEN_ENDS_SOON = timedelta(days=14)


@dataclass(frozen=True)
class SourceHealth:
    """One source; `since` is when it stopped being well, `failing` its places without answer."""

    source: str
    state: str
    looked_at: datetime
    since: datetime | None = None
    failing: int = 0
    why: str = ""
    advice: str = ""

    @property
    def is_well(self) -> bool:
        return self.state in (WELL, NEEDS_TOKEN)


@dataclass(frozen=True)
class Allowance:
    """What is left of one of GitHub's quotas, as its last reply said, and when it is full again."""

    bucket: str
    limit: int
    remaining: int
    reset_at: datetime


@dataclass(frozen=True)
class Outlook:
    """All sources that were looked at, the quotas, who waits for what, the token's last day."""

    sources: tuple[SourceHealth, ...] = ()
    quotas: tuple[Allowance, ...] = ()
    waits_until: datetime | None = None
    waits_why: str = ""
    token_ends_at: datetime | None = None

    @property
    def unwell(self) -> tuple[SourceHealth, ...]:
        return tuple(each for each in self.sources if not each.is_well)


def outlook(session: Session) -> Outlook:
    """How things stand; where several tokens were used, what the one used last was told."""
    sources = source_states(session, KEY)
    waits = [row for row in source_states(session, COOLDOWN).values() if row.retry_at]
    wait = max(waits, key=lambda row: row.updated_at, default=None)
    tokens = source_states(session, TOKEN).values()
    token = max(tokens, key=lambda row: row.updated_at, default=None)
    quotas: dict[str, SourceStateRow] = {}
    for key, row in sorted(source_states(session, QUOTA).items(), key=lambda e: e[1].updated_at):
        quotas[key.split(":")[2] if key.count(":") > 1 else "core"] = row
    return Outlook(
        sources=tuple(_source(key.removeprefix(KEY), row) for key, row in sorted(sources.items())),
        quotas=tuple(
            Allowance(bucket, int(row.cursor["limit"]), int(row.cursor["remaining"]), row.retry_at)
            for bucket, row in sorted(quotas.items())
            if row.retry_at is not None
        ),
        waits_until=wait.retry_at if wait else None,
        waits_why=str(wait.cursor.get("reason", "")) if wait else "",
        token_ends_at=_moment(token.cursor.get("ends_at")) if token else None,
    )


def _source(name: str, row: SourceStateRow) -> SourceHealth:
    kept = row.cursor
    failing = int(kept.get("failing") or 0)
    state = WELL
    if kept.get("skipped"):
        state = NEEDS_TOKEN
    elif kept.get("degraded"):
        state = DEGRADED
    elif failing:
        state = PARTLY
    return SourceHealth(
        source=name,
        state=state,
        looked_at=_moment(kept.get("looked_at")) or row.updated_at,
        since=_moment(kept.get("since")) if state in (PARTLY, DEGRADED) else None,
        failing=failing,
        why=str(kept.get("why") or ""),
        advice=str(kept.get("advice") or ""),
    )


def _moment(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) and text else None
