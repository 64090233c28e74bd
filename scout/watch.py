"""The loop around the sources: look, write what is new; one failure stops no other engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import structlog
from sqlalchemy import Engine
from sqlmodel import Session

from jobs.db import reading, writing
from jobs.errors import ScoutError
from jobs.store import catalog
from jobs.tables import EngineRow
from scout.news import RELEASE, News, whats_new
from scout.ref_values import RefNews
from scout.sources.base import Sighting, Source, Watched
from scout.sources.registry import SOURCES

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Trouble:
    """An engine that could not be looked at, why, and what to do.

    That `of_a_stranger`, a fork which nobody builds, is said and fails no look.
    """

    engine: str
    message: str
    advice: str = ""
    of_a_stranger: bool = False


@dataclass(frozen=True)
class Summary:
    """One round: engines looked at with what was there, what is new, what failed."""

    looked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    new: tuple[News | RefNews, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    unwatched: tuple[str, ...] = ()

    def joined(self, other: Summary) -> Summary:
        """Both rounds as one; what either looked at is watched."""
        looked = dict(self.looked)
        for name, labels in other.looked.items():
            looked[name] = (*looked.get(name, ()), *labels)
        tried = {*looked, *(each.engine for each in (*self.troubles, *other.troubles))}
        return Summary(
            looked,
            (*self.new, *other.new),
            (*self.troubles, *other.troubles),
            tuple(name for name in (*self.unwatched, *other.unwatched) if name not in tried),
        )


def watch(
    database: Engine,
    *,
    now: Callable[[], datetime],
    sources: Mapping[str, Source] = SOURCES,
    log: Path | None = None,
    on_look: Callable[[str], None] | None = None,
) -> Summary:
    """Look at every engine of the watch list once and record what is new.

    `log` holds what the sources' programs said in this round, and only in this one.
    """
    if log is not None:
        log.write_bytes(b"")
    with reading(database) as session:
        rows = catalog.engines(session)
        known = {row.name: _known(session, row) for row in rows}
    looked: dict[str, tuple[str, ...]] = {}
    new: list[News] = []
    troubles: list[Trouble] = []
    unwatched: list[str] = []
    for row in rows:
        watched = _watched(row)
        fitting = [each for each in sources.values() if each.watches(watched)]
        if not fitting:
            unwatched.append(row.name)
            continue
        if on_look is not None:
            on_look(row.name)
        try:
            sightings: list[Sighting] = []
            for source in fitting:
                found = source.look(watched, known[row.name], log=log)
                new += _record(database, row, found, now())
                sightings += found
        except ScoutError as error:
            troubles.append(Trouble(row.name, error.message, error.advice))
        except Exception as error:
            _log.exception("source crashed", engine=row.name)
            troubles.append(
                Trouble(row.name, f"our own fault: {error!r}", "please report this, with the log")
            )
        else:
            looked[row.name] = tuple(sighting.label for sighting in sightings)
    return Summary(looked, tuple(new), tuple(troubles), tuple(unwatched))


def _record(
    database: Engine, row: EngineRow, sightings: Sequence[Sighting], now: datetime
) -> list[News]:
    """Write revisions and events together; what another watcher wrote meanwhile is not new."""
    with writing(database) as session:
        engine = catalog.lock_engine(session, row.id or 0)
        news = whats_new(engine.name, sightings, _known(session, engine))
        return [each for each in news if _write(session, engine, each, now)]


def _write(session: Session, engine: EngineRow, news: News, now: datetime) -> bool:
    engine_id, seen = engine.id or 0, news.sighting
    revision_id = None
    if news.kind == RELEASE:
        revision_id = catalog.add_revision(
            session,
            engine_id=engine_id,
            commit=seen.commit,
            label=seen.label,
            order_key=seen.order_key,
            now=now,
        ).id
    event = catalog.add_event(
        session,
        key=news.key,
        kind=news.kind,
        title=news.title,
        now=now,
        engine_id=engine_id,
        revision_id=revision_id,
        payload={**seen.details, "label": seen.label, "known_commit": news.known_commit},
    )
    return event is not None


def _known(session: Session, row: EngineRow) -> dict[str, str]:
    return {each.label: each.commit for each in catalog.revisions_of(session, row.id or 0)}


def _watched(row: EngineRow) -> Watched:
    return Watched(row.name, row.repo, row.package, tuple(row.branches), row.newest)
