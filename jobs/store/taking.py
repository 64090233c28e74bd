"""The one statement that leases a job where nothing is unusual; it refuses where something is."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Interval,
    Row,
    Update,
    bindparam,
    case,
    exists,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    text,
    true,
    update,
)
from sqlmodel import Session, col

from jobs.columns import UtcDateTime
from jobs.line_tables import UseRow
from jobs.model import Lane, RigState, State
from jobs.rig_tables import RigHealthRow
from jobs.store import usage
from jobs.store.pauses import is_paused
from jobs.store.rigs import rig_of
from jobs.tables import IN_LINE, PUT_OFF, JobRow, WorkerRow

JOB = JobRow.__table__  # type: ignore[attr-defined]
SERVED = (JOB.c.lane, JOB.c.turn_at, JOB.c.id)
UNSHARED = frozenset({int(Lane.HEALTH), int(Lane.CONFIRM)})
"""Lanes where nobody is passed over: what a confirmation found out late is worth nothing."""

ONE: ColumnElement[int] = literal_column("1")
"""Said in the statement: PostgreSQL keeps no plan of a statement whose limit it does not know."""

EVERY_LANE = 2**31 - 1
"""No lane has a higher number; a column can hold none."""

Moment = ColumnElement[datetime]

GIVEN: Moment = bindparam("now", type_=UtcDateTime)
CLOCK: Moment = func.statement_timestamp(type_=UtcDateTime)
QUEUE: ColumnElement[str] = bindparam("in_queue")
WORKER: ColumnElement[str] = bindparam("by_worker")


def usual(
    asked: Session | Connection, queue: str, worker: str, now: datetime | None, *, share: float
) -> Row[Any] | None:
    """Lease the first of a queue, in one statement; without `now` the database's clock counts.

    None also where it is not as usual, and nothing was touched then: the worker drains, the queue
    is paused, somebody whose time has come has to step in, a source used too much.
    """
    statement = _usual(clock=now is None, rig=bool(rig_of(queue)), shared=share < 1)
    given: dict[str, Any] = {"in_queue": queue, "by_worker": worker}
    if rig := rig_of(queue):
        given["rig"] = rig
    if share < 1:
        given["share"] = share
    if now is not None:
        given["now"] = now
        if share < 1:
            given["since"] = now - usage.WINDOW
    return asked.execute(statement, given).first()


def one(session: Session, job_id: int, worker: str, now: datetime) -> Row[Any]:
    """Lease this row, which the transaction has locked."""
    given = {"job": job_id, "by_worker": worker, "now": now}
    return session.execute(_one(), given).one()


@cache
def _one() -> Update:
    return _leased(GIVEN).where(JOB.c.id == bindparam("job"))


@cache
def _usual(*, clock: bool, rig: bool, shared: bool) -> Update:
    now = CLOCK if clock else GIVEN
    where = [
        text(IN_LINE),
        JOB.c.queue == QUEUE,
        JOB.c.due_at <= now,
        or_(JOB.c.expires_at.is_(None), JOB.c.expires_at > now),
        not_(is_paused(QUEUE, now)),
        _none_has_to_step_in(now),
        not_(exists().where(col(WorkerRow.name) == WORKER, col(WorkerRow.draining))),
    ]
    if rig:
        where.append(JOB.c.lane <= _last_lane())
    first = select(JOB.c.id).where(*where).order_by(*SERVED).limit(ONE).correlate(None)
    statement = _leased(now).where(
        JOB.c.id == first.with_for_update(skip_locked=True).scalar_subquery()
    )
    if not shared:
        return statement
    since = (
        now - literal(usage.WINDOW, Interval()) if clock else bindparam("since", type_=UtcDateTime)
    )
    return statement.where(
        or_(*(JOB.c.lane == lane for lane in sorted(UNSHARED)), JOB.c.source.not_in(_hogs(since)))
    )


def _leased(now: Moment) -> Update:
    """The attempt is counted with the lease, and what is said of an earlier one is cleared."""
    return (
        update(JOB)
        .values(
            state=State.LEASED.value,
            fence=JOB.c.fence + 1,
            attempts=JOB.c.attempts + 1,
            leased_by=WORKER,
            beat_at=now,
            started_at=now,
            cancel_requested=False,
            progress={},
            failure_class=None,
            blame=None,
            message="",
            advice="",
        )
        .returning(JOB.c.id, JOB.c.fence, JOB.c.attempts, JOB.c.kind, JOB.c.title, JOB.c.payload)
    )


def _none_has_to_step_in(now: Moment) -> ColumnElement[bool]:
    """The earliest of those put off is asked for, which is one step in their index."""
    earliest = select(func.min(JOB.c.due_at)).where(text(PUT_OFF), JOB.c.queue == QUEUE)
    return func.coalesce(earliest.correlate(None).scalar_subquery() > now, true())


def _last_lane() -> ColumnElement[int]:
    """Of a quarantined rig only health jobs are served; they stand before all others."""
    shut = exists().where(
        col(RigHealthRow.rig) == bindparam("rig"),
        col(RigHealthRow.state) == RigState.QUARANTINED.value,
    )
    return case((shut, int(Lane.HEALTH)), else_=EVERY_LANE)


def _hogs(since: Moment) -> Any:
    """Sources that perhaps used too much; who did is counted once more before it matters."""
    of_queue = (col(UseRow.queue) == QUEUE, col(UseRow.hour) > since)
    everything = select(func.sum(UseRow.seconds)).where(*of_queue).correlate(None)
    return (
        select(col(UseRow.source))
        .where(*of_queue)
        .group_by(col(UseRow.source))
        .having(func.sum(UseRow.seconds) >= bindparam("share") * everything.scalar_subquery())
    )
