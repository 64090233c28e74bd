"""Who stands where in a queue's line, who is due, who is let past; it leases nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import sqlalchemy
from sqlalchemy import ColumnElement, TextClause, func, literal, text, tuple_, update
from sqlmodel import Session, col, select

from jobs import lifecycle
from jobs.columns import UtcDateTime
from jobs.model import Lane, State
from jobs.store import usage
from jobs.store.pauses import is_paused, paused_queues
from jobs.store.rigs import is_quarantined
from jobs.store.taking import UNSHARED
from jobs.tables import BLOCKED, HELD, IN_LINE, PUT_OFF, JobRow

STANDS = text(IN_LINE)
"""In line now; in these words the database finds the index of the line."""

WAITS_FOR_ITS_TIME = text(PUT_OFF)
SERVED = (col(JobRow.lane), col(JobRow.turn_at), col(JobRow.id))
MOST_STEP_IN = 500
"""How many step in at once."""


@dataclass(frozen=True)
class Ahead:
    """What a job stands behind in its queue; `seconds` is None where one of them is not known."""

    jobs: int
    seconds: float | None


@dataclass(frozen=True)
class _Next:
    id: int
    lane: int
    source: str


def _queues(session: Session, stands: TextClause) -> Iterator[str]:
    """Queues with such rows, one step in an index each, however many rows there are."""
    query = select(func.min(JobRow.queue)).where(stands)
    found: Any = session.exec(query).one()
    while found is not None:
        yield found
        found = session.exec(query.where(col(JobRow.queue) > found)).one()


def queues_in_line(session: Session) -> list[str]:
    """The queues in which somebody stands."""
    return list(_queues(session, STANDS))


def due_in(session: Session, queue: str, now: datetime, *, most: int) -> int:
    """How many due jobs nobody holds and a lease may take in one queue, counted up to `most`."""
    counted, served = 0, _served_lanes(session, queue)
    for stands_so, order in ((STANDS, SERVED), (WAITS_FOR_ITS_TIME, (col(JobRow.due_at),))):
        due = select(JobRow.id).where(stands_so, JobRow.queue == queue, col(JobRow.due_at) <= now)
        due = due.where(*served)
        limited = due.order_by(*order).limit(most - counted).subquery()
        counted += session.exec(select(func.count()).select_from(limited)).one()
        if counted >= most:
            break
    return counted


def oldest_due(session: Session, queue: str, now: datetime) -> datetime | None:
    """Since when the job that waits longest could have been taken; None where none could."""
    served = _served_lanes(session, queue)
    due = select(func.min(JobRow.due_at)).where(STANDS, JobRow.queue == queue, *served)
    return session.exec(due.where(col(JobRow.due_at) <= now)).one()


def due_queues(session: Session, now: datetime, *, most: int) -> dict[str, int]:
    """How many due jobs wait in each queue that is not paused, counted up to `most`."""
    names = {*_queues(session, STANDS), *_queues(session, WAITS_FOR_ITS_TIME)}
    open_queues = sorted(names - paused_queues(session, now))
    counts = {name: due_in(session, name, now, most=most) for name in open_queues}
    return {name: count for name, count in counts.items() if count}


def step_in(session: Session, queue: str, now: datetime) -> None:
    """Let those whose time has come stand in line; nobody waits for whom another let in."""
    ripe = session.exec(
        select(JobRow.id)
        .where(WAITS_FOR_ITS_TIME, JobRow.queue == queue, col(JobRow.due_at) <= now)
        .limit(MOST_STEP_IN)
        .with_for_update(skip_locked=True)
    ).all()
    if ripe:
        stand = update(JobRow).where(col(JobRow.id).in_(ripe)).values(put_off=False)
        session.execute(stand.execution_options(synchronize_session=False))


def _served_lanes(session: Session, queue: str) -> tuple[ColumnElement[bool], ...]:
    """Of a quarantined rig only health jobs are served; they stand before all others."""
    return (col(JobRow.lane) <= int(Lane.HEALTH),) if is_quarantined(session, queue) else ()


def _served_next(
    session: Session, queue: str, now: datetime, *where: ColumnElement[bool]
) -> _Next | None:
    lasts = col(JobRow.expires_at).is_(None) | (col(JobRow.expires_at) > now)
    row = session.exec(
        select(JobRow.id, JobRow.lane, JobRow.source)
        .where(STANDS, JobRow.queue == queue, col(JobRow.due_at) <= now, lasts, *where)
        .where(~is_paused(queue, now))
        .order_by(*SERVED)
        .limit(1)
        .with_for_update(skip_locked=True)
    ).first()
    return None if row is None else _Next(cast(int, row[0]), row[1], row[2])


def take_first(session: Session, queue: str, now: datetime, *, share: float) -> int | None:
    """The number of the job served next, its row locked; None where nothing is due.

    Where its source used more than `share` of the queue's time and another source stands in the
    same lane, the first of those goes first. Nobody waits for an idle worker. What was used is
    asked first: it is a handful of rows, and mostly says that nobody used too much.
    """
    step_in(session, queue, now)
    first = _served_next(session, queue, now, *_served_lanes(session, queue))
    if first is not None and share < 1 and first.lane not in UNSHARED:
        first = _let_past(session, queue, first, now, share=share) or first
    return None if first is None else first.id


def _let_past(
    session: Session, queue: str, first: _Next, now: datetime, *, share: float
) -> _Next | None:
    chosen = goes_before(session, queue, first.lane, first.source, now, share=share)
    return None if chosen is None else _served_next(session, queue, now, col(JobRow.id) == chosen)


def goes_before(
    session: Session, queue: str, lane: int, source: str, now: datetime, *, share: float
) -> int | None:
    """The job of another source that goes first because this one used more than its share.

    None where it did not, or where nobody else waits in its lane.
    """
    over = lifecycle.over_share(usage.of_sources(session, queue, now), share)
    if source not in over:
        return None
    waiting = [name for name in _sources(session, queue, lane) if name not in over]
    heads = [
        head for name in waiting if (head := _head_of(session, queue, lane, name, now)) is not None
    ]
    return min(heads, key=lambda head: head[0])[1] if heads else None


def _sources(session: Session, queue: str, lane: int) -> Iterator[str]:
    query = select(func.min(JobRow.source)).where(
        STANDS, JobRow.queue == queue, JobRow.lane == lane
    )
    found: Any = session.exec(query).one()
    while found is not None:
        yield found
        found = session.exec(query.where(col(JobRow.source) > found)).one()


def _head_of(
    session: Session, queue: str, lane: int, source: str, now: datetime
) -> tuple[tuple[datetime, int], int] | None:
    row = session.exec(
        select(JobRow.turn_at, JobRow.id)
        .where(STANDS, JobRow.queue == queue, JobRow.lane == lane, JobRow.source == source)
        .where(col(JobRow.due_at) <= now)
        .order_by(col(JobRow.turn_at), col(JobRow.id))
        .limit(1)
    ).first()
    return None if row is None else ((row[0], cast(int, row[1])), cast(int, row[1]))


def stands(row: JobRow) -> bool:
    """Whether this row has a place in line."""
    return row.state == State.QUEUED and not row.put_off


def ahead_of(session: Session, row: JobRow) -> Ahead:
    """What stands before this row in its queue."""
    place = tuple_(literal(row.lane), literal(row.turn_at, type_=UtcDateTime()), literal(row.id))
    counted, known, seconds = session.exec(
        select(
            func.count(),
            func.count(col(JobRow.estimate_seconds)),
            func.sum(JobRow.estimate_seconds),
        ).where(STANDS, JobRow.queue == row.queue, tuple_(*SERVED) < place)
    ).one()
    return Ahead(counted, float(seconds or 0) if known == counted else None)


def ahead_of_each(session: Session, rows: Collection[JobRow]) -> dict[int, Ahead]:
    """The same for many rows: each line is walked once, however many of it are asked for."""
    ids = [cast(int, row.id) for row in rows]
    before: dict[str, Any] = {
        "partition_by": col(JobRow.queue),
        "order_by": SERVED,
        "rows": (None, -1),
    }
    walked = (
        sqlalchemy.select(
            col(JobRow.id).label("id"),
            func.count().over(**before).label("jobs"),
            func.count(col(JobRow.estimate_seconds)).over(**before).label("known"),
            func.sum(JobRow.estimate_seconds).over(**before).label("seconds"),
        )
        .where(STANDS, col(JobRow.queue).in_({row.queue for row in rows}))
        .subquery()
    )
    wanted = sqlalchemy.select(walked).where(walked.c.id.in_(ids))
    found = session.execute(wanted) if ids else ()
    return {
        number: Ahead(jobs, float(seconds or 0) if known == jobs else None)
        for number, jobs, known, seconds in found
    }


def length(session: Session, queue: str) -> int:
    """How many stand in one queue's line."""
    query = select(func.count()).select_from(JobRow).where(STANDS, JobRow.queue == queue)
    return int(session.exec(query).one())


def head(session: Session, queue: str, *, most: int) -> list[JobRow]:
    """The first of a queue in serving order."""
    query = select(JobRow).where(STANDS, JobRow.queue == queue).order_by(*SERVED)
    return list(session.exec(query.limit(most)).all())


def heads(session: Session, *, most: int) -> list[JobRow]:
    """The first of all queues in serving order."""
    first = [row for name in queues_in_line(session) for row in head(session, name, most=most)]
    return sorted(first, key=lambda row: (row.lane, row.turn_at, row.id or 0))[:most]


def held_rows(session: Session) -> list[JobRow]:
    """What workers hold, in serving order."""
    return list(session.exec(select(JobRow).where(text(HELD)).order_by(*SERVED)))


def blocked_rows(session: Session, *, most: int) -> list[JobRow]:
    """The blocked, those of one cause side by side."""
    query = select(JobRow).where(text(BLOCKED)).order_by(col(JobRow.blocked_by), col(JobRow.id))
    return list(session.exec(query.limit(most)))


def live_rows(session: Session, *, most: int) -> list[JobRow]:
    """Held, in line, put off, blocked: in this order, and no more than `most`."""
    rows = held_rows(session) + heads(session, most=most)
    if len(rows) < most:
        rows += put_off_rows(session, most=most) + blocked_rows(session, most=most)
    return rows[:most]


def put_off_rows(session: Session, *, most: int) -> list[JobRow]:
    """Those who wait for a time, the earliest first."""
    query = select(JobRow).where(WAITS_FOR_ITS_TIME).order_by(col(JobRow.due_at), col(JobRow.id))
    return list(session.exec(query.limit(most)).all())
