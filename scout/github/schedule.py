"""GitHub as the schedule sees it: take the slot, look at what is due, plan, ring."""

from __future__ import annotations

import structlog

from jobs.config import Settings
from jobs.station import Station
from scout.github.desk import open_desk
from scout.github.rounds import Round, look_around
from scout.turns import end_turn, take_turn

SCHEDULE = "github"
SECONDS = 20.0
"""How long a round may keep the scout's worker from its other tasks; the rest is due again."""

log = structlog.get_logger()


def github_round(station: Station) -> Round | None:
    """One slot of the schedule, once; None where it is off or somebody took the slot."""
    settings: Settings = station.settings
    if not settings.github_minutes:
        return None
    slot = take_turn(station, SCHEDULE, minutes=settings.github_minutes)
    if slot is None:
        return None
    found = look_around(open_desk(station.database, settings, seconds=SECONDS))
    end_turn(station, SCHEDULE, slot, found, remarks=found.remarks)
    log.info("github watched", looked=found.looked, requests=found.requests, new=len(found.new))
    return found
