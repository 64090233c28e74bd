"""How every source fares, as pages and commands show it: since when not well, what is left."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session

from jobs.sightings import SourceStateRow
from jobs.store.source_states import source_states

KEY, QUOTA, COOLDOWN, TOKEN = "source:", "quota:", "cooldown:", "token:"
WELL, PARTLY, DEGRADED, NEEDS_TOKEN = "well", "partly", "degraded", "needs a token"
GITHUB, HUB, HUB_PREFIX = "GitHub", "the model hub", "hf"
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
    """What is left of one quota, as the service's last reply said, and when it is full again."""

    bucket: str
    limit: int
    remaining: int
    reset_at: datetime
    service: str = GITHUB


@dataclass(frozen=True)
class Wait:
    """A service that is left alone for a time, and why."""

    service: str
    until: datetime
    why: str


@dataclass(frozen=True)
class Outlook:
    """All sources that were looked at, the quotas, who is left alone, the GitHub token's end."""

    sources: tuple[SourceHealth, ...] = ()
    quotas: tuple[Allowance, ...] = ()
    waits: tuple[Wait, ...] = ()
    token_ends_at: datetime | None = None

    @property
    def unwell(self) -> tuple[SourceHealth, ...]:
        return tuple(each for each in self.sources if not each.is_well)


def outlook(session: Session) -> Outlook:
    """How things stand; where several tokens were used, what the one used last was told."""
    sources = source_states(session, KEY)
    tokens = source_states(session, TOKEN).values()
    token = max(tokens, key=lambda row: row.updated_at, default=None)
    return Outlook(
        sources=tuple(_source(key.removeprefix(KEY), row) for key, row in sorted(sources.items())),
        quotas=tuple(
            Allowance(
                bucket, int(row.cursor["limit"]), int(row.cursor["remaining"]), reset_at, service
            )
            for (service, bucket), (row, reset_at) in _last(session, QUOTA).items()
        ),
        waits=tuple(
            Wait(service, until, str(row.cursor.get("reason", "")))
            for (service, _), (row, until) in _last(session, COOLDOWN).items()
        ),
        token_ends_at=_moment(token.cursor.get("ends_at")) if token else None,
    )


def _last(session: Session, kind: str) -> dict[tuple[str, str], tuple[SourceStateRow, datetime]]:
    """The row written last for each bucket of each service, with the moment it names."""
    found: dict[tuple[str, str], tuple[SourceStateRow, datetime]] = {}
    rows = source_states(session, kind)
    for key, row in sorted(rows.items(), key=lambda each: each[1].updated_at):
        words = key.removeprefix(kind).split(":")
        service, words = (HUB, words[1:]) if words[0] == HUB_PREFIX else (GITHUB, words)
        if row.retry_at is not None:
            found[service, words[1] if len(words) > 1 else "core"] = row, row.retry_at
    return dict(sorted(found.items()))


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
