"""The hub as the schedule sees it: take the slot, look at what is due, plan, ring."""

from __future__ import annotations

import structlog

from jobs import clock, queue
from jobs.db import database_now, reading, writing
from jobs.dispatch import plan_events
from jobs.station import Station
from jobs.store import fleet, hub
from scout.hub.desk import open_desk
from scout.hub.rounds import HubRound, has_work, look_around

SCHEDULE, HINTS = "hub", "hub_hints"
HINT_MINUTES = 1.0
SECONDS = 20.0
"""How long a round may keep the scout's worker from its other tasks; the rest is due again."""

log = structlog.get_logger()


def hub_round(station: Station) -> HubRound | None:
    """One slot of the schedule, once; None where it is off, or somebody took the slot.

    A hint has slots of its own, so that it is looked into within a minute.
    """
    settings = station.settings
    now = clock.now()
    with reading(station.database) as session:
        if not settings.hf_minutes or not has_work(session):
            return None
        hinted = bool(hub.open_hints(session, limit=1))
    schedule, minutes = (HINTS, HINT_MINUTES) if hinted else (SCHEDULE, settings.hf_minutes)
    slot = fleet.slot_of(now, minutes=minutes)
    with writing(station.database) as session:
        if not fleet.take_slot(session, schedule, slot, now):
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
        }
        fleet.close_slot(session, schedule, slot, outcome)
    log.info("hub watched", looked=found.looked, requests=found.requests, new=len(found.new))
    for name in {job.queue for job in jobs}:
        queue.ring(station.app, name)
    return found
