"""One round of watching as the schedule sees it: take the slot, look, plan, ring, write it down."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Engine
from sqlmodel import Session

from jobs import clock, git_network, queue
from jobs.config import Settings
from jobs.db import database_now, reading, writing
from jobs.errors import ScoutError
from jobs.planning_round import plan_round
from jobs.station import Station
from jobs.store import catalog, fleet, hub
from jobs.tables import JobRow
from scout.candidate_identity import by_number
from scout.candidate_rows import candidates_due
from scout.candidates import CandidateRound, look_at_candidates
from scout.engine_facts import keep_engine_facts
from scout.github.desk import open_desk
from scout.health import note_round
from scout.history import GitHistory
from scout.loading import apply, known_here
from scout.mention_watch import keep_mentions
from scout.reading import load
from scout.ref_watch import watch_refs
from scout.scores import keep_scores
from scout.setbacks import going_on
from scout.standings import keep_standings
from scout.watch import Summary, Trouble, watch

DEMO = "demo"
TAKES_DEMO = (
    f"nothing is watched: taking the shipped list {DEMO}; "
    "to watch something else: forkscout watchlist import FILE --replace"
)
PACKAGES, GIT = PARTS = ("packages", "git")
CANDIDATES, CANDIDATES_MINUTES = "candidates", 1.0
SCHEDULE = "scout"
"""The regular watching; other schedules are looks that somebody asked for."""

log = structlog.get_logger()


def ensure_watchlist(database: Engine, settings: Settings) -> str:
    """Apply the configured watch list; without one, the shipped demo where nothing is watched.

    What a person should hear of it, or nothing.
    """
    with reading(database) as session:
        watched = catalog.engines(session, retired=True) or hub.watches(session)
        if settings.watchlist is None and watched:
            return ""
        known = known_here(session)
    found = load(settings.watchlist or Path(DEMO), known)
    with writing(database) as session:
        apply(session, found, clock.now())
    return "" if settings.watchlist else TAKES_DEMO


def look_and_plan(
    database: Engine,
    settings: Settings,
    *,
    parts: Collection[str] = PARTS,
    force: bool = False,
    on_look: Callable[[str], None] | None = None,
) -> tuple[Summary, list[JobRow]]:
    """Look at packages and repositories once and queue what the news asks for.

    With `force`, also at repositories that gave no answer a moment ago.
    """
    if said := ensure_watchlist(database, settings):
        log.info(said)
    summary = Summary()
    if PACKAGES in parts:
        summary = watch(database, now=clock.now, log=settings.logs / "pip.log", on_look=on_look)
        setbacks: list[Trouble] = []
        with going_on(setbacks, PACKAGES):
            note_round(database, PACKAGES, summary, now=clock.now())
        summary = summary.joined(Summary(troubles=tuple(setbacks)))
    if GIT in parts:
        summary = summary.joined(_look_at_git(database, settings, on_look, force=force))
    jobs: list[JobRow] = []
    unplanned: list[Trouble] = []
    with going_on(unplanned, "what is to be queued"):
        jobs = plan_round(database, budget_hours=settings.budget_hours_per_day)
    return summary.joined(Summary(troubles=tuple(unplanned))), jobs


def _look_at_git(
    database: Engine,
    settings: Settings,
    on_look: Callable[[str], None] | None,
    *,
    force: bool,
) -> Summary:
    history = GitHistory(settings.network, settings.github_token)
    moves = watch_refs(
        database,
        history=history,
        network=settings.network,
        now=clock.now,
        force=force,
        on_look=on_look,
        token=settings.github_token,
    )
    troubles: list[Trouble] = []
    with going_on(troubles, "the network of forks"):
        git_network.tidy(settings.network)
    with going_on(troubles, "what git showed"):
        note_round(database, GIT, moves, now=clock.now())
        troubles += keep_standings(database, history=history, now=clock.now)
        for keep in (keep_engine_facts, keep_mentions):
            for problem in keep(database, history=history, now=clock.now):
                log.warning("ranking facts not worked out", cause=problem)
        keep_scores(database, now=clock.now)
    return moves.joined(Summary(troubles=tuple(troubles)))


def candidates_round(station: Station) -> CandidateRound | None:
    """Look at forks that somebody pushed to; None where another round is at it."""
    settings = station.settings
    if not settings.github_minutes or not candidates_due(station.database, clock.now()):
        return None
    with writing(station.database) as session:
        now = database_now(session)
        slot = fleet.slot_of(now, minutes=CANDIDATES_MINUTES)
        if not fleet.take_slot(session, CANDIDATES, slot, now):
            return None
    found = look_at_candidates(
        station.database,
        network=settings.network,
        now=clock.now,
        token=settings.github_token,
        ask=by_number(lambda: open_desk(station.database, settings)),
    )
    outcome = {
        "looked": list(found.looked),
        "new": [news.title for news in found.new],
        "problems": [f"{t.engine}: {t.message}; {t.advice}".rstrip("; ") for t in found.troubles],
        "left": found.left,
    }
    note_round(station.database, CANDIDATES, found.summary, now=clock.now())
    if found.looked:
        keep_scores(station.database, now=clock.now)
    plan_round(station.database, budget_hours=settings.budget_hours_per_day)
    with writing(station.database) as session:
        fleet.close_slot(session, CANDIDATES, slot, {"state": "done", **outcome})
    log.info("candidates looked at", looked=len(found.looked), new=len(found.new), left=found.left)
    return found


def watch_round(station: Station, schedule: str, slot: datetime) -> None:
    """One slot of a schedule, once, its outcome on record."""
    with writing(station.database) as session:
        if not fleet.take_slot(session, schedule, slot, database_now(session)):
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
    now = database_now(session)
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
