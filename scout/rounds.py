"""One round of watching as the schedule sees it: take the slot, look, plan, ring, write it down."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Engine
from sqlmodel import Session

from jobs import clock, queue
from jobs.config import Settings
from jobs.db import reading, writing
from jobs.dispatch import plan_events
from jobs.errors import ScoutError
from jobs.station import Station
from jobs.store import catalog, fleet
from jobs.tables import JobRow
from scout.history import GitHistory
from scout.loading import apply
from scout.reading import load
from scout.ref_watch import watch_refs
from scout.standings import keep_standings
from scout.watch import Summary, watch

DEMO = "demo"
PACKAGES, GIT = PARTS = ("packages", "git")
SCHEDULE = "scout"
"""The regular watching; other schedules are looks that somebody asked for."""

log = structlog.get_logger()


def ensure_watchlist(database: Engine, settings: Settings) -> None:
    """Apply the configured watch list; without one, the shipped demo where nothing is watched."""
    if settings.watchlist is None:
        with reading(database) as session:
            if catalog.engines(session, retired=True):
                return
    found = load(settings.watchlist or Path(DEMO))
    with writing(database) as session:
        apply(session, found, clock.now())


def look_and_plan(
    database: Engine,
    settings: Settings,
    *,
    parts: Collection[str] = PARTS,
    on_look: Callable[[str], None] | None = None,
) -> tuple[Summary, list[JobRow]]:
    """Look at packages and repositories once and queue what the news asks for."""
    ensure_watchlist(database, settings)
    summary = Summary()
    if PACKAGES in parts:
        summary = watch(database, now=clock.now, log=settings.logs / "pip.log", on_look=on_look)
    if GIT in parts:
        summary = summary.joined(_look_at_git(database, settings, on_look))
    with writing(database) as session:
        jobs = plan_events(session, clock.now())
    return summary, jobs


def _look_at_git(
    database: Engine, settings: Settings, on_look: Callable[[str], None] | None
) -> Summary:
    history = GitHistory(settings.network)
    moves = watch_refs(
        database,
        history=history,
        network=settings.network,
        now=clock.now,
        on_look=on_look,
    )
    troubles = keep_standings(database, history=history, now=clock.now)
    return moves.joined(Summary(troubles=tuple(troubles)))


def watch_round(station: Station, schedule: str, slot: datetime) -> None:
    """One slot of a schedule, once, its outcome on record."""
    with writing(station.database) as session:
        if not fleet.take_slot(session, schedule, slot, clock.now()):
            return
        if schedule != SCHEDULE:
            _count_as_regular(session, station.settings)
    jobs: list[JobRow] = []
    try:
        summary, jobs = look_and_plan(station.database, station.settings)
        outcome = told(summary, jobs)
    except ScoutError as fault:
        outcome = {"problems": [f"{fault.message}; {fault.advice}".rstrip("; ")], "new": []}
    except Exception as fault:
        log.exception("round crashed")
        outcome = {"problems": [f"a fault of forkscout: {fault!r}"[:500]], "new": []}
    with writing(station.database) as session:
        fleet.close_slot(session, schedule, slot, {"state": "done", **outcome})
    log.info("sources watched", **{k: len(v) for k, v in outcome.items()})
    for name in {job.queue for job in jobs}:
        queue.ring(station.app, name)


def _count_as_regular(session: Session, settings: Settings) -> None:
    """A look by hand stands for the regular one of this slot."""
    now = clock.now()
    regular = fleet.slot_of(now, minutes=settings.scout_minutes)
    fleet.take_slot(session, SCHEDULE, regular, now)


def told(summary: Summary, jobs: list[JobRow]) -> dict[str, Any]:
    """A round in words, as it is stored and shown."""
    problems = [f"{t.engine}: {t.message}; {t.advice}".rstrip("; ") for t in summary.troubles]
    return {
        "looked": {engine: list(labels) for engine, labels in summary.looked.items()},
        "new": [news.title for news in summary.new],
        "problems": problems,
        "jobs": [job.id for job in jobs],
    }
