"""Who holds a job: lease, beat, finish, release, reap; every write is guarded by the fence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import Connection, Row, text, update
from sqlmodel import Session, col, select

from jobs import lifecycle
from jobs.dialect import wire
from jobs.errors import JobFailure, StaleLease
from jobs.lifecycle import Next
from jobs.line_tables import AttemptRow
from jobs.model import Blame, Kind, State
from jobs.store import failures, fleet, line, taking, usage
from jobs.store.needs import refresh_dependents
from jobs.store.work import HELD, take_turn
from jobs.tables import HELD as HELD_ROWS
from jobs.tables import JobRow, WorkerRow

IS_HELD = text(HELD_ROWS)
MESSAGE_CHARS = 4000
"""What is kept of a failure's words; the log holds the rest."""


@dataclass(frozen=True)
class Lease:
    """The right to work on a job; worth nothing once somebody holds a higher fence."""

    job_id: int
    fence: int
    attempts: int
    kind: Kind
    title: str
    payload: Mapping[str, Any]

    @property
    def marker(self) -> str:
        """What every process of this lease carries in its environment."""
        return f"{self.job_id}:{self.fence}"


@dataclass(frozen=True)
class Orders:
    """What the holder of a lease is told when it beats; empty means go on."""

    stop: str = ""


def lease(
    session: Session,
    queue: str,
    worker: str,
    now: datetime,
    *,
    share: float = lifecycle.SOURCE_SHARE,
) -> Lease | None:
    """Take the due job that is served next in `queue`; None where nothing waits, the queue is
    paused or the worker drains.

    The attempt is counted before any work starts, so that a crash leaves its trace. `share` is
    what one source may use of the queue before others that wait beside it go first. Rows that the
    session holds already are not told.
    """
    row = taking.usual(session, queue, worker, now, share=share)
    if row is None and not fleet.is_draining(session, worker):
        job_id = line.take_first(session, queue, now, share=share)
        row = None if job_id is None else taking.one(session, job_id, worker, now)
    return None if row is None else _lease_of(row)


def lease_by_its_clock(
    connection: Connection,
    queue: str,
    worker: str,
    *,
    share: float = lifecycle.SOURCE_SHARE,
) -> Lease | None:
    """The same in one statement, by PostgreSQL's own clock; None says that `lease` must be asked.

    It is a whole transaction by itself, and may be committed as one.
    """
    row = taking.usual(connection, queue, worker, None, share=share)
    return None if row is None else _lease_of(row)


def _lease_of(row: Row[Any]) -> Lease:
    return Lease(row.id, row.fence, row.attempts, Kind(row.kind), row.title, dict(row.payload))


def _held(session: Session, held: Lease) -> JobRow:
    """The row of a lease that is still good, locked; raises `StaleLease` where it is not."""
    query = (
        select(JobRow)
        .where(
            JobRow.id == held.job_id,
            JobRow.fence == held.fence,
            col(JobRow.state).in_(HELD),
        )
        .with_for_update()
    )
    row = session.exec(query).first()
    if row is None:
        raise StaleLease(f"job {held.job_id}, fence {held.fence}")
    return row


def check(session: Session, held: Lease) -> None:
    """Raise `StaleLease` unless this lease is the newest and alive; locks the row."""
    take_turn(session)
    _held(session, held)


def start(session: Session, held: Lease, now: datetime) -> None:
    """From leased to running; to say so again changes nothing."""
    row = _held(session, held)
    if row.state == State.RUNNING:
        return
    lifecycle.check_move(State(row.state), State.RUNNING)
    row.state, row.started_at, row.beat_at = State.RUNNING.value, now, now
    session.add(row)


def beat(session: Session, held: Lease, now: datetime, progress: Mapping[str, Any]) -> None:
    """Say that the job lives and how far it is."""
    statement = (
        update(JobRow)
        .where(
            col(JobRow.id) == held.job_id,
            col(JobRow.fence) == held.fence,
            col(JobRow.state).in_(HELD),
        )
        .values(beat_at=now, progress=wire.storable(progress))
    )
    if session.execute(statement).rowcount != 1:  # type: ignore[attr-defined]
        raise StaleLease(f"job {held.job_id}, fence {held.fence}")


def orders(session: Session, held: Lease, worker: str) -> Orders:
    """Whether the holder must stop: lost its lease, was cancelled, or its worker drains."""
    row = session.get(JobRow, held.job_id)
    if row is None or row.fence != held.fence or row.state not in HELD:
        return Orders(stop="lost")
    if row.cancel_requested:
        return Orders(stop="cancelled")
    station = session.get(WorkerRow, worker)
    return Orders(stop="draining") if station is not None and station.draining else Orders()


def succeed(session: Session, held: Lease, now: datetime, message: str = "") -> None:
    """The job is done; what waited for it is freed."""
    take_turn(session)
    row = _held(session, held)
    _end(session, row, State.SUCCEEDED, now, message)


def fail(session: Session, held: Lease, failure: JobFailure, now: datetime, *, limit: int) -> Next:
    """Store what went wrong and decide what comes next."""
    take_turn(session)
    row = _held(session, held)
    following = lifecycle.after_failure(
        failure.blame, row.attempts, limit=limit, failure_class=failure.failure_class
    )
    row.failure_class, row.blame = failure.failure_class, failure.blame.value
    row.advice = wire.plain(failure.advice)
    message = wire.plain(failure.detail or failure.message)[:MESSAGE_CHARS]
    failures.record(session, row, failure, message, now)
    if following.state is State.QUEUED:
        _requeue(session, row, now, message, wait=following.delay)
    elif following.state is State.BLOCKED and row.cancel_requested:
        _end(session, row, State.CANCELLED, now, message)
    elif following.state is State.BLOCKED:
        _let_go(session, row, State.BLOCKED, now, message)
        row.blocked_by, row.attempts = failure.failure_class, row.attempts - 1
    else:
        _end(session, row, following.state, now, message)
    return following


def cancelled(session: Session, held: Lease, now: datetime) -> None:
    """The job stopped because somebody asked it to."""
    take_turn(session)
    row = _held(session, held)
    _end(session, row, State.CANCELLED, now, "cancelled while it ran")


def release(
    session: Session,
    held: Lease,
    now: datetime,
    message: str,
    *,
    wait: timedelta = timedelta(0),
) -> None:
    """Give the job back unfinished, due again after `wait`; the attempt does not count."""
    take_turn(session)
    row = _held(session, held)
    _requeue(session, row, now, wire.plain(message)[:MESSAGE_CHARS], wait=wait)
    row.attempts -= 1


def reap(session: Session, now: datetime, *, silence: timedelta, limit: int) -> list[int]:
    """Take back the jobs whose holder fell silent; their numbers."""
    silent = select(JobRow.id).where(IS_HELD, col(JobRow.beat_at) < now - silence)
    if session.exec(silent.limit(1)).first() is None:
        return []
    take_turn(session)
    rows = session.exec(
        select(JobRow)
        .where(IS_HELD, col(JobRow.beat_at) < now - silence)
        .with_for_update(skip_locked=True)
    ).all()
    for row in rows:
        _lose(session, row, now, f"worker {row.leased_by} fell silent", limit=limit)
    return [cast(int, row.id) for row in rows]


def take_back(session: Session, worker: str, now: datetime, *, limit: int) -> list[int]:
    """Reap at once what an earlier life of this worker still holds; a worker does one job."""
    take_turn(session)
    query = select(JobRow).where(IS_HELD, JobRow.leased_by == worker)
    rows = session.exec(query.with_for_update()).all()
    for row in rows:
        _lose(session, row, now, f"worker {worker} died", limit=limit)
    return [cast(int, row.id) for row in rows]


def _lose(session: Session, row: JobRow, now: datetime, message: str, *, limit: int) -> None:
    row.failure_class, row.blame = "worker_lost", Blame.INFRASTRUCTURE.value
    message = f"{message} in attempt {row.attempts}"
    if lifecycle.after_loss(row.attempts, limit=limit).state is State.DEAD:
        row.advice = f"see `forkscout logs {row.id}`, then `forkscout retry {row.id}`"
        _end(session, row, State.DEAD, now, message)
    else:
        _requeue(session, row, now, message)


def _let_go(session: Session, row: JobRow, state: State, now: datetime, message: str) -> None:
    """End the lease, and write down what it was."""
    lifecycle.check_move(State(row.state), state)
    started = row.started_at or now
    usage.count(session, row, (now - started).total_seconds(), now)
    session.add(
        AttemptRow(
            job_id=cast(int, row.id),
            fence=row.fence,
            number=row.attempts,
            worker=row.leased_by or "",
            started_at=started,
            ended_at=now,
            outcome=state.value,
            failure_class=row.failure_class,
            message=message,
        )
    )
    row.state, row.leased_by, row.beat_at, row.message = state.value, None, None, message
    session.add(row)


def _requeue(
    session: Session,
    row: JobRow,
    now: datetime,
    message: str,
    *,
    wait: timedelta = timedelta(0),
) -> None:
    if row.cancel_requested:
        _end(session, row, State.CANCELLED, now, message)
        return
    _let_go(session, row, State.QUEUED, now, message)
    row.due_at, row.put_off = now + wait, wait > timedelta(0)
    row.ages_at = lifecycle.ages_at(row.lane, row.due_at)
    session.add(row)


def _end(session: Session, row: JobRow, state: State, now: datetime, message: str) -> None:
    _let_go(session, row, state, now, message)
    row.finished_at, row.blocked_by = now, None
    refresh_dependents(session, row)
