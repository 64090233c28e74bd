"""One event with all that its rows say of it, as the value that planning takes; plans nothing."""

from __future__ import annotations

from typing import cast

import structlog
from sqlmodel import Session, select

from jobs.planning.drafts import obstacle
from jobs.planning.plan import OF_FILES, OF_ISSUES
from jobs.planning.world import Event, World
from jobs.store import forks, published, worlds
from jobs.store.events import Ask
from jobs.tables import EngineRow, EventRow, RevisionRow

log = structlog.get_logger()


def seen(session: Session, row: EventRow, ask: Ask, world: World) -> Event:
    """The event as planning sees it; what it tells of is made known first."""
    engine = session.get(EngineRow, ask["engine_id"]) if ask["engine_id"] else None
    revision = _revision(session, row, ask, engine)
    file = None
    if row.kind in OF_FILES:
        found, fault = published.file_of(session, row, world.now)
        file = worlds.known_file(found) if found else None
        if fault:
            log.info("model file not usable", event_id=row.id, cause=fault)
    parent = newest = None
    if engine is not None and revision is not None:
        newest = worlds.newest_revision(session, cast(int, engine.id))
        parent = worlds.revision_before(session, revision)
        known = world.engines.get(engine.name)
        if parent is None and ask["revision_id"] and known and obstacle(known) is None:
            published.parent_of(session, row, revision, world.now)
            parent = worlds.revision_before(session, revision)
    facts = row.payload.get("facts")
    return Event(
        id=cast(int, row.id),
        kind=row.kind,
        title=row.title,
        engine=engine.name if engine else "",
        revision=worlds.known_revision(engine, revision) if engine and revision else None,
        parent=worlds.known_revision(engine, parent) if engine and parent else None,
        published=file,
        linked=_note(session, row),
        low_priority=bool(row.payload.get("low_priority")),
        newest=newest is None or revision is None or newest.id == revision.id,
        facts=facts if isinstance(facts, dict) else row.payload,
    )


def _revision(
    session: Session, row: EventRow, ask: Ask, engine: EngineRow | None
) -> RevisionRow | None:
    """What the event is about: its own revision, or the head at which it was noticed."""
    if ask["revision_id"]:
        return session.get(RevisionRow, ask["revision_id"])
    facts = row.payload.get("facts")
    after = facts.get("after") if isinstance(facts, dict) else None
    if engine is None or not isinstance(after, str):
        return None
    query = select(RevisionRow).where(
        RevisionRow.engine_id == engine.id, RevisionRow.commit == after
    )
    return session.exec(query).first()


def _note(session: Session, row: EventRow) -> str | None:
    """What a person noted beside an issue that they linked; None for one that nobody did."""
    number = row.payload.get("number")
    if row.kind not in OF_ISSUES or not isinstance(number, int):
        return None
    found = forks.linked_issue(session, str(row.payload.get("full_name")), number)
    return found.note if found else None
