"""Queries on the model hub: places watched, repositories, files, hints; the caller commits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from sqlalchemy import and_, case
from sqlmodel import Session, col, func, or_, select

from jobs.sightings import HubFileRow, HubRepositoryRow, HubWatchRow, SourceStateRow
from jobs.store import source_states

KNOWN, GONE = "known", "gone"
HINT = "hf_hint:"
SEEN_HINTS = 20
"""Deliveries remembered per repository, so that one told twice is one."""
MOST_HINTS = 2000
"""Repositories hinted at and not yet looked at; whoever sends more is not heard."""
HINTS_KEPT = timedelta(days=7)
_OF = col(HubFileRow.repository_id) == col(HubRepositoryRow.id)
_NEWEST = (col(HubFileRow.first_seen_at).desc(), col(HubFileRow.id))
_FIRST_LOOK = and_(
    col(HubRepositoryRow.baseline_sha) != "",
    col(HubRepositoryRow.sha) == "",
    col(HubRepositoryRow.found_late).is_(False),
)


def watches(session: Session) -> list[HubWatchRow]:
    """Places that a watch list names now."""
    query = select(HubWatchRow).where(col(HubWatchRow.retired).is_(False))
    return list(session.exec(query.order_by(col(HubWatchRow.watch))))


def upsert_watch(session: Session, watch: str, *, roles: Sequence[str], now: datetime) -> bool:
    """The place with those roles; whether anything is different now."""
    row = session.get(HubWatchRow, watch)
    if row is not None and row.roles == list(roles) and not row.retired:
        return False
    row = row or HubWatchRow(watch=watch, created_at=now)
    row.roles, row.retired = list(roles), False
    session.add(row)
    return True


def retire_watches(session: Session, *, keep: Collection[str]) -> list[str]:
    """Places that are watched no more; what was found there stays."""
    gone = [row for row in watches(session) if row.watch not in keep]
    for row in gone:
        row.retired = True
        session.add(row)
    return [row.watch for row in gone]


def repository(session: Session, hub_id: str) -> HubRepositoryRow | None:
    """The repository with that id of the hub."""
    query = select(HubRepositoryRow).where(HubRepositoryRow.hub_id == hub_id)
    return session.exec(query).first()


def repositories_by_id(session: Session, hub_ids: Collection[str]) -> dict[str, HubRepositoryRow]:
    """Which of those repositories we know, held until the transaction ends."""
    query = select(HubRepositoryRow).where(col(HubRepositoryRow.hub_id).in_(hub_ids))
    query = query.order_by(col(HubRepositoryRow.id)).with_for_update()
    return {row.hub_id: row for row in session.exec(query)}


def known_heads(session: Session, watch: str) -> dict[str, str]:
    """The commit last listed of each repository that a place showed, by the hub's id."""
    return {row.hub_id: row.head_sha for row in watched_repositories(session, watch)}


def lock_repository(session: Session, repository_id: int) -> HubRepositoryRow:
    """The row, held until the transaction ends."""
    query = select(HubRepositoryRow).where(HubRepositoryRow.id == repository_id)
    return session.exec(query.with_for_update()).one()


def repositories_named(session: Session, full_name: str) -> list[HubRepositoryRow]:
    """Repositories under a name as a person types it, those that are there first."""
    query = select(HubRepositoryRow).where(
        func.lower(HubRepositoryRow.full_name) == full_name.lower()
    )
    return sorted(
        session.exec(query.order_by(col(HubRepositoryRow.id).desc())),
        key=lambda row: row.state != KNOWN,
    )


def repository_names(session: Session) -> list[str]:
    """The name of every repository that was found."""
    return list(session.exec(select(HubRepositoryRow.full_name).distinct()))


def watched_repositories(session: Session, watch: str) -> list[HubRepositoryRow]:
    """Repositories that a place showed."""
    query = select(HubRepositoryRow).order_by(col(HubRepositoryRow.id))
    return [row for row in session.exec(query) if watch in row.watches]


def due_repositories(
    session: Session, now: datetime, *, watched: Collection[str], limit: int
) -> list[HubRepositoryRow]:
    """Repositories of watched places to look at now, news before first looks."""
    is_first = case((_FIRST_LOOK, 1), else_=0)
    query = (
        select(HubRepositoryRow)
        .where(col(HubRepositoryRow.look_at) <= now)
        .order_by(is_first, col(HubRepositoryRow.look_at), col(HubRepositoryRow.id))
    )
    rows = session.exec(query)
    return [row for row in rows if any(watch in watched for watch in row.watches)][:limit]


def files(session: Session, repository_id: int, *, gone: bool = False) -> list[HubFileRow]:
    """Files of a repository by path; with `gone`, deleted ones too."""
    query = select(HubFileRow).where(HubFileRow.repository_id == repository_id)
    if not gone:
        query = query.where(col(HubFileRow.gone_at).is_(None))
    return list(session.exec(query.order_by(col(HubFileRow.path))))


def file_with_facts(session: Session, sha256: str) -> HubFileRow | None:
    """A file of that content whose header was read, wherever it lies."""
    query = select(HubFileRow).where(
        HubFileRow.sha256 == sha256,
        col(HubFileRow.pending).is_(False),
        HubFileRow.unread == "",
        func.length(HubFileRow.role) > 0,
    )
    rows = session.exec(query.order_by(col(HubFileRow.id)).limit(20))
    return next((row for row in rows if row.facts), None)


def places_of(session: Session, sha256: str) -> list[str]:
    """Where these bytes lay at the last look, as `OWNER/REPO/PATH`, the newest first."""
    query = (
        select(HubRepositoryRow.full_name, HubFileRow.path)
        .join(HubFileRow, _OF)
        .where(
            HubFileRow.sha256 == sha256,
            col(HubFileRow.gone_at).is_(None),
            HubRepositoryRow.state == KNOWN,
            col(HubRepositoryRow.disabled).is_(False),
        )
    )
    return [f"{name}/{path}" for name, path in session.exec(query.order_by(*_NEWEST).limit(5))]


def is_old_news(session: Session, sha256: str) -> bool:
    """Whether that content lay somewhere before anybody watched the place."""
    query = select(HubFileRow.id).where(
        HubFileRow.sha256 == sha256, col(HubFileRow.quiet).is_(True)
    )
    return session.exec(query.limit(1)).first() is not None


def pending_repositories(
    session: Session, *, watched: Collection[str], limit: int
) -> list[HubRepositoryRow]:
    """Repositories of watched places with headers still to be read, those with news first."""
    query = (
        select(HubRepositoryRow)
        .join(HubFileRow, col(HubFileRow.repository_id) == col(HubRepositoryRow.id))
        .where(
            col(HubFileRow.pending).is_(True),
            col(HubFileRow.gone_at).is_(None),
            HubRepositoryRow.state == KNOWN,
            col(HubRepositoryRow.disabled).is_(False),
        )
        .order_by(col(HubFileRow.quiet), col(HubRepositoryRow.id))
    )
    rows = {row.id: row for row in session.exec(query)}
    kept = [row for row in rows.values() if any(watch in watched for watch in row.watches)]
    return kept[:limit]


def found_models(
    session: Session, roles: Collection[str], *, limit: int
) -> list[tuple[HubFileRow, HubRepositoryRow]]:
    """Files that are there and have a role, the newest first."""
    query = (
        select(HubFileRow, HubRepositoryRow)
        .join(HubRepositoryRow, col(HubFileRow.repository_id) == col(HubRepositoryRow.id))
        .where(
            col(HubFileRow.gone_at).is_(None),
            HubRepositoryRow.state == KNOWN,
            or_(col(HubFileRow.role).in_(roles), func.length(HubFileRow.unread) > 0),
        )
        .order_by(col(HubFileRow.first_seen_at).desc(), col(HubFileRow.id))
    )
    return list(session.exec(query.limit(limit)))


def add_hint(
    session: Session, hub_id: str, *, name: str, scope: str, new_sha: str, now: datetime
) -> bool:
    """Remember that somebody says a repository moved; False where that was said before.

    A hint is no fact: it only makes the next look at that repository come sooner.
    """
    key = f"{HINT}{hub_id}"
    if source_states.source_state(session, key) is None and _open_count(session) >= MOST_HINTS:
        return False
    row = source_states.lock_source_state(session, key, now)
    said = f"{scope}:{new_sha}"
    seen = list(row.cursor.get("seen", ()))
    if said in seen:
        return False
    row.cursor = {"hub_id": hub_id, "name": name, "seen": [*seen, said][-SEEN_HINTS:]}
    row.retry_at = now
    return True


def open_hints(session: Session, *, limit: int) -> list[SourceStateRow]:
    """Hints nobody has looked into, the oldest first."""
    query = select(SourceStateRow).where(
        col(SourceStateRow.key).startswith(HINT, autoescape=True),
        col(SourceStateRow.retry_at).is_not(None),
    )
    return list(session.exec(query.order_by(col(SourceStateRow.retry_at)).limit(limit)))


def close_hint(session: Session, key: str, now: datetime) -> None:
    """A hint was looked into; what was said stays known for a while."""
    row = source_states.lock_source_state(session, key, now)
    row.retry_at = None


def _open_count(session: Session) -> int:
    query = select(func.count()).where(
        col(SourceStateRow.key).startswith(HINT, autoescape=True),
        col(SourceStateRow.retry_at).is_not(None),
    )
    return int(session.exec(query).one())
