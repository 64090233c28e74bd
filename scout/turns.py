"""One turn of a schedule: taken once; what was found is planned, written down and rung for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from jobs import queue
from jobs.db import database_now, writing
from jobs.planning_round import plan_round
from jobs.station import Station
from jobs.store import fleet


class Titled(Protocol):
    """Some news."""

    @property
    def title(self) -> str: ...


class Found(Protocol):
    """What a round of one source found."""

    @property
    def looked(self) -> int: ...
    @property
    def new(self) -> Sequence[Titled]: ...
    @property
    def troubles(self) -> Sequence[str]: ...
    @property
    def waiting(self) -> Sequence[str]: ...


def take_turn(station: Station, schedule: str, *, minutes: float) -> datetime | None:
    """The slot of now, for who takes it first; None for all others."""
    with writing(station.database) as session:
        now = database_now(session)
        slot = fleet.slot_of(now, minutes=minutes)
        return slot if fleet.take_slot(session, schedule, slot, now) else None


def end_turn(
    station: Station, schedule: str, slot: datetime, found: Found, *, remarks: Sequence[str] = ()
) -> None:
    """Queue what the news asks for, record the round, and ring for the queued jobs."""
    outcome = {
        "state": "done",
        "looked": found.looked,
        "new": [each.title for each in found.new],
        "problems": list(found.troubles),
        "waiting": list(found.waiting),
        "remarks": list(remarks),
    }
    jobs = plan_round(station.database, budget_hours=station.settings.budget_hours_per_day)
    with writing(station.database) as session:
        fleet.close_slot(session, schedule, slot, outcome)
    for name in {job.queue for job in jobs}:
        queue.ring(station.app, name)
