"""GitHub as the schedule sees it: take the slot, look at what is due, plan, ring."""

from __future__ import annotations

import structlog

from jobs import clock, queue
from jobs.config import Settings
from jobs.db import database_now, writing
from jobs.dispatch import plan_events
from jobs.station import Station
from jobs.store import fleet
from scout.github.desk import open_desk
from scout.github.rounds import Round, look_around

SCHEDULE = "github"
SECONDS = 20.0
"""How long a round may keep the scout's worker from its other tasks; the rest is due again."""

log = structlog.get_logger()


def github_round(station: Station) -> Round | None:
    """One slot of the schedule, once; None where it is off or somebody took the slot."""
    settings: Settings = station.settings
    if not settings.github_minutes:
        return None
    now = clock.now()
    slot = fleet.slot_of(now, minutes=settings.github_minutes)
    with writing(station.database) as session:
        if not fleet.take_slot(session, SCHEDULE, slot, now):
            return None
    found = look_around(open_desk(station.database, settings, seconds=SECONDS))
    with writing(station.database) as session:
        jobs = plan_events(session, database_now(session))
        outcome = {
            "state": "done",
            "looked": found.looked,
            "new": [each.title for each in found.new],
            "problems": list(found.troubles),
            "waiting": list(found.waiting),
            "remarks": list(found.remarks),
        }
        fleet.close_slot(session, SCHEDULE, slot, outcome)
    log.info("github watched", looked=found.looked, requests=found.requests, new=len(found.new))
    for name in {job.queue for job in jobs}:
        queue.ring(station.app, name)
    return found
