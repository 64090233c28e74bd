"""The hub as the schedule sees it: take the slot, look at what is due, plan, ring."""

from __future__ import annotations

import structlog

from jobs.db import reading
from jobs.station import Station
from jobs.store import hub
from scout.hub.desk import open_desk
from scout.hub.rounds import HubRound, has_work, look_around
from scout.turns import end_turn, take_turn

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
    with reading(station.database) as session:
        if not settings.hf_minutes or not has_work(session):
            return None
        hinted = bool(hub.open_hints(session, limit=1))
    schedule, minutes = (HINTS, HINT_MINUTES) if hinted else (SCHEDULE, settings.hf_minutes)
    slot = take_turn(station, schedule, minutes=minutes)
    if slot is None:
        return None
    found = look_around(open_desk(station.database, settings, seconds=SECONDS))
    end_turn(station, schedule, slot, found)
    log.info("hub watched", looked=found.looked, requests=found.requests, new=len(found.new))
    return found
