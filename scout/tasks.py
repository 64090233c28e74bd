"""Celery's way into this room: watch the sources, and keep the queues honest."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from celery import shared_task

from jobs import clock, queue
from jobs.config import Settings
from jobs.db import database_now, reading
from jobs.rig_care import keep_rigs
from jobs.station import Station, reap
from jobs.store import fleet, line
from jobs.upkeep import keep_line, keep_negatives
from jobs.worker import open_station
from scout.rounds import SCHEDULE, candidates_round, watch_round


@lru_cache(maxsize=1)
def _station() -> Station:
    """This pool process's desk."""
    return open_station(Settings(), "scout")


@shared_task(name="scout.watch", ignore_result=True)
def watch(schedule: str = SCHEDULE, slot: str = "") -> None:
    """Watch every source once for this slot; a slot somebody took is left alone."""
    station = _station()
    minutes = station.settings.scout_minutes
    moment = datetime.fromisoformat(slot) if slot else fleet.slot_of(clock.now(), minutes=minutes)
    watch_round(station, schedule, moment)


@shared_task(name="scout.github", ignore_result=True)
def github() -> None:
    """Look at what is due on GitHub, for as long as the other tasks can wait."""
    from scout.github.schedule import github_round

    github_round(_station())


@shared_task(name="scout.hub", ignore_result=True)
def hub() -> None:
    """Look at what is due on the model hub, for as long as the other tasks can wait."""
    from scout.hub.schedule import hub_round

    hub_round(_station())


@shared_task(name="scout.candidates", ignore_result=True)
def candidates() -> None:
    """Look at forks that somebody pushed to, a few at a time."""
    candidates_round(_station())


@shared_task(name="scout.sweep", ignore_result=True)
def sweep() -> None:
    """Take silent jobs back, keep the line in order, ask for golden runs, ring for the unheard."""
    station = _station()
    reap(station)
    keep_line(station)
    keep_negatives(station)
    keep_rigs(station)
    with reading(station.database) as session:
        due = line.due_queues(session, database_now(session), most=queue.MOST_RINGS)
    queue.sweep(station.app, due)
