"""What a sweep does to jobs that wait, batch by batch; it leases nothing."""

from __future__ import annotations

import structlog

from jobs.db import database_now, writing
from jobs.station import Station
from jobs.store import doubts, retests, upkeep, usage

MOST_BATCHES = 20
"""So that one sweep leaves time for the next."""

log = structlog.get_logger()


def keep_line(station: Station) -> None:
    """Move up what waited too long, end what is worth nothing any more, forget old use."""
    for change, says in ((upkeep.age, "jobs moved up a lane"), (upkeep.expire, "jobs expired")):
        for _ in range(MOST_BATCHES):
            with writing(station.database) as session:
                changed = change(session, database_now(session))
            if not changed:
                break
            log.info(says, count=changed)
    with writing(station.database) as session:
        usage.forget(session, database_now(session))


def keep_negatives(station: Station) -> None:
    """Take back what doubtful results said; ask again what expired or whose grounds moved."""
    with writing(station.database) as session:
        now, hours = database_now(session), station.settings.budget_hours_per_day
        doubts.settle(session, now)
        jobs = retests.look(session, now, budget_hours=hours)
    if jobs:
        log.info("tried again what did not work", jobs=[job.id for job in jobs])
