"""Queries on repositories, their refs, and what a source remembers of them; none commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import tuple_
from sqlmodel import Session, col, delete, func, or_, select, update

from jobs.sightings import RefRow, RepositoryRow, SourceStateRow
from jobs.tables import EngineRow

WATCHED_TIER = 0
RETRY_DELAY = timedelta(minutes=15)
FAILED_BECAUSE = "failed_because"
RETRY_DELAY_LIMIT = timedelta(hours=24)


def repository_of(session: Session, engine: EngineRow, now: datetime) -> RepositoryRow:
    """The repository of an engine: the one tied to it, else an untied one by name, else a new row.

    Two engines of one repository have a row each: a row is tied to one engine for good.
    """
    name = engine.repo or ""
    by_engine = select(RepositoryRow).where(RepositoryRow.engine_id == engine.id)
    by_name = select(RepositoryRow).where(
        func.lower(RepositoryRow.full_name) == name.lower(),
        col(RepositoryRow.engine_id).is_(None),
    )
    row = session.exec(by_engine.order_by(col(RepositoryRow.id))).first()
    row = row or session.exec(by_name.order_by(col(RepositoryRow.id))).first()
    if row is None:
        row = RepositoryRow(full_name=name, first_seen_at=now, last_seen_at=now)
    elif row.engine_id is None:
        # As a candidate only its own refs were kept; as an engine it is seen for the first time.
        forget_refs(session, row.id or 0)
    row.engine_id, row.tier = engine.id, min(row.tier, WATCHED_TIER)
    session.add(row)
    session.flush()
    return row


def repositories_of(
    session: Session, engines: Iterable[EngineRow], now: datetime
) -> dict[int, RepositoryRow]:
    """`repository_of` each engine by its id; those long tied are found in one query together."""
    tied = repositories_of_engines(session)
    found = {}
    for engine in engines:
        place = tied.get(engine.id or 0)
        if place is None or place.tier > WATCHED_TIER:
            place = repository_of(session, engine, now)
        found[engine.id or 0] = place
    return found


def repositories_of_engines(session: Session) -> dict[int, RepositoryRow]:
    """The repository of each engine that has one; the first where there are several."""
    rows = session.exec(
        select(RepositoryRow)
        .where(col(RepositoryRow.engine_id).is_not(None))
        .order_by(col(RepositoryRow.id).desc())
    )
    return {row.engine_id: row for row in rows if row.engine_id is not None}


def name_default_branch(session: Session, repository_id: int, name: str | None) -> None:
    """Remember the branch a repository calls its main one."""
    row = session.get_one(RepositoryRow, repository_id)
    if row.default_branch != name:
        row.default_branch = name
        session.add(row)


def tags_changed_at(session: Session, repository_id: int) -> datetime | None:
    """When a tag of the repository last came or moved, as far as git has shown it."""
    query = select(func.max(col(RefRow.changed_at))).where(
        RefRow.repository_id == repository_id, col(RefRow.name).startswith("refs/tags/")
    )
    return session.exec(query).one()


def refs_of(session: Session, repository_id: int) -> dict[str, str]:
    """Full ref name to commit, as last recorded; deleted ones are left out."""
    query = select(RefRow.name, RefRow.oid).where(
        RefRow.repository_id == repository_id, col(RefRow.gone_at).is_(None)
    )
    return dict(session.exec(query).all())


@dataclass(frozen=True)
class Recorded:
    """Full ref name to commit: what is there, and branches that are not there any more."""

    here: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)


def recorded_of_engines(session: Session) -> dict[int, Recorded]:
    """What was last recorded of each engine's repository, by the number of the repository."""
    query = (
        select(RefRow.repository_id, RefRow.name, RefRow.oid, col(RefRow.gone_at).is_(None))
        .join(RepositoryRow, col(RepositoryRow.id) == col(RefRow.repository_id))
        .where(
            col(RepositoryRow.engine_id).is_not(None),
            or_(col(RefRow.gone_at).is_(None), ~col(RefRow.name).startswith("refs/tags/")),
        )
    )
    found: dict[int, Recorded] = {}
    for number, name, oid, is_here in session.exec(query):
        recorded = found.setdefault(number, Recorded())
        (recorded.here if is_here else recorded.lost)[name] = oid
    return found


def oids(session: Session, wanted: Iterable[tuple[int, str]]) -> dict[int, str]:
    """The commit of one named ref of each repository, where it is there."""
    place = tuple_(col(RefRow.repository_id), col(RefRow.name))
    query = select(RefRow.repository_id, RefRow.oid).where(
        place.in_(list(wanted)), col(RefRow.gone_at).is_(None)
    )
    return dict(session.exec(query).all())


def record_refs(
    session: Session, repository_id: int, seen: Mapping[str, str], now: datetime
) -> None:
    """Make the rows say what was seen; a ref that is not there any more is marked, not deleted."""
    query = select(RefRow).where(RefRow.repository_id == repository_id)
    rows = {row.name: row for row in session.exec(query)}
    for name, oid in seen.items():
        row = rows.get(name)
        if row is None:
            session.add(
                RefRow(
                    repository_id=repository_id,
                    name=name,
                    oid=oid,
                    first_seen_at=now,
                    changed_at=now,
                )
            )
        elif row.oid != oid or row.gone_at is not None:
            row.oid, row.changed_at, row.gone_at = oid, now, None
    for name, row in rows.items():
        if name not in seen and row.gone_at is None:
            row.gone_at = row.changed_at = now
    session.flush()


def forget_refs(session: Session, repository_id: int) -> None:
    """Drop all refs of a repository: its next look is a first sight."""
    session.exec(delete(RefRow).where(col(RefRow.repository_id) == repository_id))


def source_state(session: Session, key: str, now: datetime) -> SourceStateRow:
    """What a source remembers under this key, made if it was not there."""
    row = session.get(SourceStateRow, key)
    if row is None:
        row = SourceStateRow(key=key, updated_at=now)
        session.add(row)
        session.flush()
    return row


def note_answers(session: Session, keys: Collection[str], now: datetime) -> None:
    """These places answered: earlier failures are forgiven."""
    answered = update(SourceStateRow).where(col(SourceStateRow.key).in_(keys))
    session.exec(answered.values(failures=0, retry_at=None, updated_at=now))


def note_failure(session: Session, key: str, now: datetime, *, why: str = "") -> None:
    """The place gave no answer; it is asked less and less often, at least once a day."""
    row = source_state(session, key, now)
    row.failures, row.updated_at = row.failures + 1, now
    doubled = RETRY_DELAY * float(2 ** min(row.failures - 1, 10))
    if why:
        row.cursor = {**row.cursor, FAILED_BECAUSE: why}
    row.retry_at = now + min(doubled, RETRY_DELAY_LIMIT)
    session.add(row)
