"""What time does to jobs that wait: they move up a lane, or expire; the caller commits."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from sqlalchemy import case, text, update
from sqlmodel import Session, col, select

from jobs import lifecycle
from jobs.model import Lane, State
from jobs.store.needs import refresh_dependents
from jobs.store.work import take_turn
from jobs.tables import AGES, EXPIRES, JobNeedRow, JobRow

BATCH = 500
"""How many rows one transaction changes, so that nobody waits long for it."""


def age(session: Session, now: datetime) -> int:
    """Move up by one lane what waited too long in its own; how many, at most `BATCH` a lane."""
    return sum(_raise(session, lane, now) for lane in sorted(Lane))


def _raise(session: Session, lane: Lane, now: datetime) -> int:
    above = lifecycle.lane_above(lane)
    if above is None:
        return 0
    says = (
        f"moved up from {lane.word} to {above.word}: "
        f"it waited longer than {lifecycle.AGES_AFTER.total_seconds() / 3600:.0f} h"
    )
    old = session.exec(
        select(JobRow.id)
        .where(text(AGES), col(JobRow.ages_at) <= now, JobRow.lane == int(lane))
        .order_by(col(JobRow.ages_at))
        .limit(BATCH)
        .with_for_update(skip_locked=True)
    ).all()
    if old:
        session.execute(
            update(JobRow)
            .where(col(JobRow.id).in_(old), col(JobRow.state) == State.QUEUED.value)
            .values(
                lane=int(above),
                ages_at=lifecycle.ages_at(above, now),
                message=case((col(JobRow.message) == "", says), else_=JobRow.message + "; " + says),
            )
            .execution_options(synchronize_session=False)
        )
    return len(old)


def expire(session: Session, now: datetime) -> int:
    """End what waited longer than it is worth; how many, at most `BATCH`.

    Those that waited for it are told. What a worker holds is finished.
    """
    overdue = select(JobRow).where(text(EXPIRES), col(JobRow.expires_at) <= now)
    if session.exec(overdue.limit(1)).first() is None:
        return 0
    take_turn(session)
    rows = session.exec(
        overdue.order_by(col(JobRow.expires_at)).limit(BATCH).with_for_update(skip_locked=True)
    ).all()
    for row in rows:
        lifecycle.check_move(State(row.state), State.EXPIRED)
        row.message = (
            f"expired: nobody came to it until {row.expires_at:%Y-%m-%d %H:%M} UTC, "
            "and its answer is worth nothing later"
        )
        row.advice = f"`forkscout retry {row.id}` queues it without an end"
        row.state, row.finished_at, row.blocked_by = State.EXPIRED.value, now, None
        row.put_off = False
        session.add(row)
    session.flush()
    ids = [cast(int, row.id) for row in rows]
    needed = set(session.exec(select(JobNeedRow.needs_id).where(col(JobNeedRow.needs_id).in_(ids))))
    for row in rows:
        if row.id in needed:
            refresh_dependents(session, row)
    return len(rows)
