"""Celery's way into this room: look into a queue, and prove the cage when a worker starts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import structlog
from celery import shared_task
from celery.signals import worker_process_init, worker_ready

from jobs import queue
from jobs.config import Settings
from jobs.db import database_now, writing
from jobs.lifecycle import NO_SANDBOX
from jobs.model import Kind
from jobs.station import Station, serve
from jobs.store import fleet, rigs, work
from jobs.trees import remove
from jobs.worker import is_ours, open_station, served_queue
from workers.benching import bench
from workers.building import build
from workers.cages import cage_advice
from workers.errands import cage_here, marker_prefix
from workers.fetching import fetch_model
from workers.golden import run_golden
from workers.host import environment_of, machine_facts
from workers.leftovers import end_leftovers_of
from workers.machine import forget_card, machine_obstacle
from workers.weight_bringing import take_stock

HANDLERS = {
    Kind.FETCH_MODEL: fetch_model,
    Kind.BUILD: build,
    Kind.BENCH: bench,
    Kind.SMOKE: run_golden,
}

log = structlog.get_logger()


@lru_cache(maxsize=1)
def _station(queue_name: str) -> Station:
    """This pool process's desk."""
    return open_station(Settings(), queue_name)


@shared_task(name="workers.look", ignore_result=True)
def look(queue_name: str) -> None:
    """Do what is due in a queue."""
    if is_ours(queue_name):
        serve(_station(queue_name), queue_name, HANDLERS, check=machine_obstacle)


def _sweep_scratch(settings: Settings, queue_name: str) -> None:
    """Remove what killed jobs of this queue left; the one worker of a queue is just starting."""
    patterns = ("build-*", "weights-*") if queue_name == "build" else ()
    for pattern in patterns:
        for folder in settings.scratch.glob(pattern):
            remove(folder)


@worker_process_init.connect
def end_leftovers(**_: Any) -> None:
    """End what a killed pool process left running; a worker of a queue does one job at a time."""
    queue_name = served_queue()
    if queue_name != "build" and not queue_name.startswith("bench."):
        return
    station = _station(queue_name)
    leftovers = end_leftovers_of(marker_prefix(station), docker_host=station.settings.docker_host)
    if leftovers:
        log.warning("processes of a killed job ended", count=leftovers)


@worker_ready.connect
def prove_cage(**_: Any) -> None:
    """Say once whether strangers' source can run here, and free the jobs that waited for it."""
    queue_name = served_queue()
    if queue_name != "build" and not queue_name.startswith("bench."):
        return
    station = open_station(Settings(), queue_name)
    leftovers = end_leftovers_of(marker_prefix(station), docker_host=station.settings.docker_host)
    if leftovers:
        log.warning("processes of an earlier life ended", count=leftovers)
    _sweep_scratch(station.settings, queue_name)
    forget_card(station)
    take_stock(station.settings, station.database, worker=station.name, queue=queue_name)
    switched_off = station.settings.sandbox == "none"
    cage = cage_here(station.settings.sandbox, station.settings.docker_host)
    with writing(station.database) as session:
        fleet.say_sandbox(session, station.name, "" if cage.faults else cage.sandbox.name)
        if rig := rigs.rig_of(queue_name):
            changed = rigs.arrive(
                session, rig, environment_of(machine_facts()), database_now(session)
            )
            log.info("rig described", rig=rig, changed=changed)
        freed = 0 if cage.faults else work.unblock(session, NO_SANDBOX, queue_name)
    if cage.faults:
        log.warning(
            "no sandbox, foreign source is not run here",
            queue=queue_name,
            cause="; ".join(cage.faults),
            fix="FORKSCOUT_SANDBOX=auto" if switched_off else cage_advice(),
        )
    if freed:
        queue.ring(station.app, queue_name)
    station.database.dispose()
