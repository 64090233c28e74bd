"""Which found forks a person wants watched closely; nothing of them is ever built."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from jobs.errors import UsageError, did_you_mean
from jobs.git import repo_url
from jobs.sightings import RepositoryRow
from jobs.store import forks
from scout.github.governor import Tier, tier_of


def watch_fork(session: Session, full_name: str) -> bool:
    """Watch a found fork as closely as an engine that is not built; whether that is new."""
    row = _found(session, full_name)
    if row.engine_id is not None:
        raise UsageError(
            f"{row.full_name} is watched as an engine", advice="see: forkscout watchlist list"
        )
    is_new = row.tier != Tier.WATCHED
    row.tier = Tier.WATCHED
    session.add(row)
    return is_new


def unwatch_fork(session: Session, full_name: str, *, now: datetime) -> None:
    """Back to the tier that its pushes give it."""
    row = _found(session, full_name)
    if row.engine_id is not None or row.tier != Tier.WATCHED:
        raise UsageError(f"{row.full_name} is not watched", advice="see: forkscout watch list")
    row.tier = tier_of(watched=False, created_at=row.created_at, pushed_at=row.pushed_at, now=now)
    session.add(row)


def watched_forks(session: Session) -> list[RepositoryRow]:
    """Forks that a person asked to be watched, whatever became of them."""
    states = (forks.KNOWN, forks.GONE, forks.BLOCKED)
    rows = forks.repositories(session, states=states, closest_tier=Tier.WATCHED)
    return [row for row in rows if row.tier == Tier.WATCHED and row.engine_id is None]


def _found(session: Session, full_name: str) -> RepositoryRow:
    repo_url(full_name)
    rows = [row for row in forks.repositories_like(session, full_name) if row.github_id]
    if not rows:
        look = (
            "look first: forkscout scout run --source github_forks; "
            f"or watch it as an engine: forkscout watchlist add {full_name}"
        )
        names = [row.full_name for row in forks.repositories(session) if row.github_id]
        near = did_you_mean(full_name, names, none="")
        raise UsageError(
            f"no fork {full_name} was found yet",
            advice=f"{near} Else {look}" if near.startswith("did you") else look,
        )
    return rows[0]
