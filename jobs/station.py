"""One worker's desk: take a job, keep its lease, hand it to its handler, record what came out."""

from __future__ import annotations

import errno
import fcntl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import structlog
from celery import Celery
from sqlalchemy import Engine
from sqlmodel import Session

from jobs import attempt_logs, hearing, leasing, queue
from jobs.config import Settings
from jobs.control import Control
from jobs.db import database_now, insist, reading, writing
from jobs.errors import (
    NO_ROOM,
    JobFailure,
    Later,
    Permanent,
    ScoutError,
    StaleLease,
    Stopped,
    Transient,
    disk_full,
)
from jobs.lifecycle import Next
from jobs.machine_check import Obstacle
from jobs.model import Blame, Kind, State
from jobs.store import births, fleet, leases, line, pauses
from jobs.store.leases import Lease

BENCH = "bench."
LOCK_POLL_SECONDS = 0.2
TURN_SECONDS = 3.0

Told = TypeVar("Told")

log = structlog.get_logger()


@dataclass(frozen=True)
class Station:
    """All that a worker process needs, built once at its start."""

    settings: Settings
    database: Engine
    app: Celery
    name: str

    def log_of(self, held: Lease) -> Path:
        """Where this lease's log goes."""
        path = self.settings.attempt_log(held.job_id, held.fence)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


Record = Callable[[Session], str]
"""Writes what a job found out; runs in the transaction that ends the job, returns one sentence."""

Handler = Callable[[Station, Lease, Control], Record]

Check = Callable[[Station], Obstacle | None]
"""What keeps this machine from a bench; asked before each lease of one."""


def _no_check(_station: Station) -> Obstacle | None:
    return None


def serve(
    station: Station,
    queue_name: str,
    handlers: Mapping[Kind, Handler],
    *,
    check: Check = _no_check,
) -> int:
    """Do what is due in a queue until nothing is, or this worker drains; how many jobs."""
    done = 0
    with hearing.looking(station.settings.locks, queue_name):
        with writing(station.database) as session:
            fleet.has_heard(session, station.name, database_now(session))
        while _serve_one(station, queue_name, handlers, check):
            done += 1
    return done


def _may_bench(station: Station, check: Check) -> bool:
    """Whether nothing keeps this machine from a bench; what does is told where workers are shown.

    No job is touched: they wait until the next look finds the machine well.
    """
    found = check(station)
    with writing(station.database) as session:
        news = fleet.say_trouble(
            session,
            station.name,
            found.says if found else "",
            found.advice if found else "",
        )
    if news and found:
        log.error("no bench is taken here", code=found.code, cause=found.says, fix=found.advice)
    elif news:
        log.info("benches are taken again")
    return found is None


def _serve_one(
    station: Station, queue_name: str, handlers: Mapping[Kind, Handler], check: Check
) -> bool:
    if not has_due(station, queue_name):
        return False
    alone = queue_name.startswith(BENCH)
    if not alone:
        _let_benches_take_their_turn(station)
    with quiet_machine(
        station.settings.locks, alone=alone, give_up=partial(_is_draining, station)
    ) as free:
        if not free or (alone and not _may_bench(station, check)):
            return False
        held = leasing.take(
            station.database, queue_name, station.name, share=station.settings.source_share
        )
        if held is None:
            return False
        with structlog.contextvars.bound_contextvars(job_id=held.job_id, fence=held.fence):
            log.info("job leased", title=held.title, attempt=held.attempts)
            stop = _work(station, held, handlers.get(held.kind, _unknown))
    _ring_for_due(station)
    return not stop


def _unknown(_station: Station, held: Lease, _control: Control) -> Record:
    raise Permanent(
        f"no worker of this release can do a {held.kind} job in this queue",
        advice="the row was written by another release; cancel it or run that one",
    )


def _let_benches_take_their_turn(station: Station) -> None:
    """A bench that has just become due needs a moment to hear of it before the next build."""
    deadline = time.monotonic() + TURN_SECONDS
    while time.monotonic() < deadline:
        with reading(station.database) as session:
            served = {worker.queue for worker in fleet.workers(session)}
            due = line.due_queues(session, database_now(session), most=1)
        if not any(name.startswith(BENCH) and name in served for name in due):
            return
        time.sleep(LOCK_POLL_SECONDS)


def _is_draining(station: Station) -> bool:
    with reading(station.database) as session:
        return fleet.is_draining(session, station.name)


def has_due(station: Station, queue_name: str) -> bool:
    """Whether this queue is open and something of it is due."""
    with reading(station.database) as session:
        now = database_now(session)
        waits = line.due_in(session, queue_name, now, most=1)
        return waits > 0 and queue_name not in pauses.paused_queues(session, now)


def _ring_for_due(station: Station) -> None:
    with reading(station.database) as session:
        due = line.due_queues(session, database_now(session), most=1)
    for name in due:
        queue.ring(station.app, name)


def _work(station: Station, held: Lease, handler: Handler) -> bool:
    """Run the handler and store the outcome; whether this worker should take no more."""
    control = Control()
    try:
        with _kept(station, held, control):
            _settle(station, lambda session: leases.start(session, held, database_now(session)))
            station.settings.prepare()
            record = handler(station, held, control)
            control.check()
            sentence = _settle(station, partial(_succeed, station, held, record, control))
        log.info("job succeeded", outcome=sentence)
    except Stopped:
        return _stopped(station, held, control.reason)
    except StaleLease:
        log.warning("result refused, the lease is lost")
    except Later as fault:
        _put_off(station, held, fault)
    except Exception as fault:
        failure = as_failure(fault)
        log.warning(
            "job failed",
            failure_class=failure.failure_class,
            cause=failure.detail,
            exc_info=failure.failure_class == "bug",
        )
        _record_failure(station, held, failure, control)
    return False


def _settle(station: Station, act: Callable[[Session], Told]) -> Told:
    """Write what became of a lease; hours of work are not given up for a connection that is cut."""
    return insist(station.database, act, seconds=station.settings.lease_seconds)


def _succeed(
    station: Station, held: Lease, record: Record, control: Control, session: Session
) -> str:
    leases.check(session, held)
    sentence = record(session)
    leases.beat(session, held, database_now(session), control.ended())
    leases.succeed(session, held, database_now(session), sentence)
    _learn(station, session, held)
    return sentence


def _stopped(station: Station, held: Lease, reason: str) -> bool:
    log.info("job stopped", reason=reason)
    try:
        with writing(station.database) as session:
            if reason == "cancelled":
                leases.cancelled(session, held, database_now(session))
            elif reason == "draining":
                leases.release(
                    session, held, database_now(session), "given back, the worker was stopped"
                )
    except StaleLease:
        log.warning("the lease was lost meanwhile")
    return reason == "draining"


def _put_off(station: Station, held: Lease, fault: Later) -> None:
    """Back into the queue until the time somebody named; waiting costs no attempt."""
    log.info("job put off", wait_seconds=fault.wait_seconds, cause=fault.detail)
    wait = timedelta(seconds=fault.wait_seconds)
    try:
        _settle(
            station,
            lambda it: leases.release(it, held, database_now(it), fault.detail, wait=wait),
        )
    except StaleLease:
        log.warning("the lease was lost meanwhile")


def _record_failure(
    station: Station, held: Lease, failure: JobFailure, control: Control
) -> Next | None:
    limit = station.settings.max_attempts
    log_of = station.settings.attempt_log
    failure.lines = failure.lines or attempt_logs.last_lines(log_of(held.job_id, held.fence))

    def fail(session: Session) -> Next:
        leases.check(session, held)
        leases.beat(session, held, database_now(session), control.ended())
        following = leases.fail(session, held, failure, database_now(session), limit=limit)
        _learn(station, session, held)
        return following

    try:
        return _settle(station, fail)
    except StaleLease:
        log.warning("failure not recorded, the lease is lost")
        return None


def _learn(station: Station, session: Session, held: Lease) -> None:
    """What does not work, or works again, is known in the moment the job ends."""
    days = station.settings.negative_days
    births.job_ended(session, held.job_id, database_now(session), days=days)


def as_failure(fault: Exception) -> JobFailure:
    """Sort what a handler raised into a class and whom to blame."""
    if isinstance(fault, JobFailure):
        return fault
    detail = str(fault) or type(fault).__name__
    if isinstance(fault, OSError) and fault.errno in NO_ROOM:
        advice = "free disk space in the home folder; the job is tried again by itself"
        return disk_full(detail, advice=advice)
    if isinstance(fault, OSError) and fault.errno in (errno.EIO, errno.EROFS, errno.EACCES):
        return JobFailure(
            detail,
            failure_class="disk_failed",
            blame=Blame.INFRASTRUCTURE,
            advice="look at the disk and the permissions of the home folder",
        )
    if isinstance(fault, Transient):
        return JobFailure(
            detail, failure_class="transient", blame=Blame.INFRASTRUCTURE, advice=fault.advice
        )
    if isinstance(fault, (Permanent, ScoutError)):
        return JobFailure(
            detail, failure_class="refused", blame=Blame.CONFIGURATION, advice=fault.advice
        )
    return JobFailure(
        f"{type(fault).__name__}: {detail}",
        failure_class="bug",
        blame=Blame.INFRASTRUCTURE,
        advice="this is a fault of forkscout; the worker's log has the traceback",
    )


@contextmanager
def _kept(station: Station, held: Lease, control: Control) -> Iterator[None]:
    """Beat for the job while the block runs, and pass on what the holder is told."""
    ended = threading.Event()
    keeper = threading.Thread(
        target=_keep, args=(station, held, control, ended), name="lease-keeper", daemon=True
    )
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()


def _keep(station: Station, held: Lease, control: Control, ended: threading.Event) -> None:
    settings = station.settings
    told, last_beat = control.progress, time.monotonic()
    while not ended.wait(settings.control_seconds):
        try:
            with reading(station.database) as session:
                orders = leases.orders(session, held, station.name)
            if orders.stop:
                control.ask(orders.stop)
            due = time.monotonic() - last_beat >= settings.heartbeat_seconds
            if due or control.progress is not told:
                told = control.progress
                with writing(station.database) as session:
                    leases.beat(session, held, database_now(session), told)
                last_beat = time.monotonic()
        except StaleLease:
            control.ask("lost")
        except Exception as fault:
            log.warning("heartbeat failed", cause=str(fault))
            if time.monotonic() - last_beat > settings.lease_seconds:
                control.ask("lost")


@contextmanager
def quiet_machine(
    locks: Path, *, alone: bool, give_up: Callable[[], bool] = lambda: False
) -> Iterator[bool]:
    """A bench has the machine to itself; other jobs share it, and let a waiting bench go first.

    Yields False where `give_up` said so before the machine was free.
    """
    mode = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    with (locks / "turn").open("w") as turn, (locks / "machine").open("w") as machine:
        free = _take(turn, mode, give_up) and _take(machine, mode, give_up)
        if not alone:
            fcntl.flock(turn, fcntl.LOCK_UN)
        yield free


def _take(lock: IO[str], mode: int, give_up: Callable[[], bool]) -> bool:
    while True:
        try:
            fcntl.flock(lock, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            if give_up():
                return False
            time.sleep(LOCK_POLL_SECONDS)
        else:
            return True


def reap(station: Station) -> list[int]:
    """Take back the jobs of workers that fell silent."""
    silence = timedelta(seconds=station.settings.lease_seconds)
    with writing(station.database) as session:
        taken = leases.reap(
            session, database_now(session), silence=silence, limit=station.settings.max_attempts
        )
    if taken:
        log.warning("silent jobs taken back", jobs=taken)
    return taken


def is_settled(states: Mapping[State, int]) -> bool:
    """Whether nothing is left that could still run by itself."""
    return not any(states.get(state) for state in (State.QUEUED, State.LEASED, State.RUNNING))
