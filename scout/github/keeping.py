"""How what GitHub said of a repository gets into its row; it decides through pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from jobs.sightings import RepositoryRow
from jobs.store import forks
from scout.github.base import Happening
from scout.github.governor import Tier, tier_of
from scout.github.repository_facts import (
    Before,
    RepositoryFacts,
    blocked,
    called,
    changes,
    gone,
    is_gone,
)

MISSED_SINCE = "missed_since"


@dataclass(frozen=True)
class Place:
    """Where a repository stands in its network."""

    parent_id: int | None
    root_id: int | None
    depth: int | None


def keep(
    session: Session,
    row: RepositoryRow | None,
    facts: RepositoryFacts,
    *,
    place: Place,
    now: datetime,
    moved: bool = False,
) -> tuple[RepositoryRow, list[Happening]]:
    """The row with these facts, and what changed in it; a new row changes nothing."""
    news: list[Happening] = []
    facts = facts.believed(now)
    if row is None:
        row = RepositoryRow(full_name=facts.full_name, first_seen_at=now, last_seen_at=now)
        row.facts = {} if facts.size_kib is None else {"first_size_kib": facts.size_kib}
    else:
        before = Before(row.full_name, row.default_branch, row.archived, row.state)
        news = changes(before, facts, moved=moved)
    row.github_id, row.full_name = facts.github_id, facts.full_name
    row.parent_github_id = place.parent_id
    row.root_github_id, row.depth = place.root_id, place.depth
    row.default_branch = facts.default_branch or row.default_branch
    row.description, row.stars = facts.description, facts.stars
    row.forks_count = facts.forks_count
    row.archived, row.disabled = facts.archived, facts.disabled
    row.created_at = facts.created_at or row.created_at
    row.pushed_at = facts.pushed_at or row.pushed_at
    rest = {k: v for k, v in row.facts.items() if k != MISSED_SINCE}
    size = {} if facts.size_kib is None else {"size_kib": facts.size_kib}
    row.facts = {**rest, "owner": facts.owner, **size}
    row.state, row.misses, row.last_seen_at = forks.KNOWN, 0, now
    if row.tier != Tier.WATCHED or row.engine_id is not None:
        row.tier = tier_of(
            watched=row.engine_id is not None,
            created_at=row.created_at,
            pushed_at=row.pushed_at,
            now=now,
        )
    session.add(row)
    return row, news


def block(
    session: Session, row: RepositoryRow, *, status: int | None, now: datetime
) -> list[Happening]:
    """GitHub shows it to nobody; the event where that is new."""
    if row.state == forks.BLOCKED:
        return []
    row.state = forks.BLOCKED
    session.add(row)
    return [blocked(called(row), row.full_name, status, now)]


def would_be_gone(row: RepositoryRow, now: datetime) -> bool:
    """Whether one more miss declares the repository gone."""
    since = _missed_since(row, now)
    return row.state != forks.GONE and is_gone(row.misses + 1, since, now)


def miss(session: Session, row: RepositoryRow, *, now: datetime) -> Happening | None:
    """Count one look that did not find the repository; the event once that means gone."""
    since = _missed_since(row, now)
    row.misses += 1
    row.facts = {**row.facts, MISSED_SINCE: since.isoformat()}
    session.add(row)
    if row.state == forks.GONE or not is_gone(row.misses, since, now):
        return None
    row.state = forks.GONE
    return gone(called(row), row.full_name, since)


def _missed_since(row: RepositoryRow, now: datetime) -> datetime:
    text = row.facts.get(MISSED_SINCE)
    return datetime.fromisoformat(text) if text else now
