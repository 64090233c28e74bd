"""One Celery worker of one queue: greets, takes back what its last life held, drains when told."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import signal
import socket
import threading
import time
from typing import Any

import structlog
from celery.signals import worker_process_init, worker_ready, worker_shutting_down

from jobs import hearing, queue
from jobs.config import Settings
from jobs.db import database_now, open_database, reading, writing
from jobs.errors import UsageError
from jobs.hearing import Ear
from jobs.model import RIG_NAME
from jobs.station import BENCH, Station, has_due
from jobs.store import fleet, leases, line
from jobs.tables import WorkerRow

QUEUES = ("scout", "build", "publish")
CONCURRENCY = {"scout": 3}
"""A slow source must not keep the reaper waiting; long jobs run one at a time."""

PR_SET_PDEATHSIG = 1
SERVED = "FORKSCOUT_QUEUE"

log = structlog.get_logger()


def worker_name(settings: Settings, queue_name: str) -> str:
    """Stable over restarts, so that a worker finds what its last life held; one per home folder."""
    home = hashlib.sha256(os.fsencode(settings.root)).hexdigest()[:6]
    return f"{queue_name}@{socket.gethostname()}.{home}"


def served_queue() -> str:
    """The queue that this process and its children serve; empty outside of a worker."""
    return os.environ.get(SERVED, "")


def is_ours(queue_name: str) -> bool:
    """Whether a doorbell means us; a message decides neither which jobs we take nor our name."""
    if queue_name != served_queue():
        log.warning("doorbell of another queue ignored", queue=str(queue_name)[:80])
        return False
    return True


def open_station(settings: Settings, queue_name: str) -> Station:
    """The desk of this process."""
    return Station(
        settings=settings,
        database=open_database(settings),
        app=queue.make_app(settings, rooms={queue.room_of(queue_name)}),
        name=worker_name(settings, queue_name),
    )


def run(settings: Settings, queue_name: str) -> None:
    """Work until told to stop; raises `UsageError` where this queue is already served here."""
    rig = queue_name.removeprefix(BENCH)
    if queue_name not in QUEUES and (rig == queue_name or not RIG_NAME.fullmatch(rig)):
        raise UsageError(
            f"there is no queue {queue_name!r}", advice="queues: scout, build, publish, bench.RIG"
        )
    settings.prepare()
    with (settings.locks / f"worker.{queue_name}").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"a worker for {queue_name} already runs here",
                advice="one worker per queue and home folder; `forkscout up` starts them all",
            ) from None
        station = open_station(settings, queue_name)
        _take_back(station)
        _listen(station, queue_name)
        os.environ[SERVED] = queue_name
        station.app.worker_main(
            [
                "worker",
                f"--hostname={station.name}",
                f"--queues={queue_name}",
                "--pool=prefork",
                f"--concurrency={CONCURRENCY.get(queue_name, 1)}",
                "--prefetch-multiplier=1",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
                "--loglevel=WARNING",
            ]
        )
        with writing(station.database) as session:
            fleet.farewell(session, station.name)


def _take_back(station: Station) -> None:
    with writing(station.database) as session:
        taken = leases.take_back(
            session, station.name, database_now(session), limit=station.settings.max_attempts
        )
    if taken:
        log.warning("jobs of an earlier life taken back", jobs=taken)


def _listen(station: Station, queue_name: str) -> None:
    """Connect the worker's signals; Celery keeps weak references, so the functions are kept."""

    def greet(**_: Any) -> None:
        with writing(station.database) as session:
            now = database_now(session)
            fleet.greet(
                session,
                WorkerRow(
                    name=station.name,
                    queue=queue_name,
                    host=socket.gethostname(),
                    pid=os.getpid(),
                    started_at=now,
                    beat_at=now,
                ),
            )
            due = line.due_queues(session, now, most=1)
        if queue_name in due:
            queue.ring(station.app, queue_name)
        beat = threading.Thread(
            target=_beat, args=(station, queue_name), name="worker-beat", daemon=True
        )
        beat.start()

    def drain(**_: Any) -> None:
        with writing(station.database) as session:
            fleet.drain(session, station.name)

    worker_ready.connect(greet, weak=False)
    worker_shutting_down.connect(drain, weak=False)
    worker_process_init.connect(_die_with_parent, weak=False)


def _beat(station: Station, queue_name: str) -> None:
    pause = threading.Event()
    ear = Ear(station.settings.deaf_seconds)
    while not pause.wait(station.settings.heartbeat_seconds):
        try:
            with writing(station.database) as session:
                fleet.worker_beat(session, station.name, database_now(session))
            if _hears_nothing(station, queue_name, ear):
                _start_again(station, queue_name)
        except Exception as fault:
            log.warning("worker heartbeat failed", cause=str(fault))


def _hears_nothing(station: Station, queue_name: str, ear: Ear) -> bool:
    """A connection to the broker can be dead and look alive: then work is due and nobody looks."""
    with reading(station.database) as session:
        draining = fleet.is_draining(session, station.name)
    waits = not draining and has_due(station, queue_name)
    found = hearing.heard(station.settings.locks, queue_name)
    return ear.is_deaf(found, waits=waits, at_seconds=time.monotonic())


def _start_again(station: Station, queue_name: str) -> None:
    """End this process, which does nothing; whoever started it starts it anew."""
    log.error("doorbell unheard, the worker starts again", queue=queue_name)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(station.settings.drain_seconds)
    os._exit(1)


def _die_with_parent(**_: Any) -> None:
    """A pool process must not outlive its worker, or a job would run without a lease."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
