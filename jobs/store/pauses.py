"""Which queues rest, since when and why; a paused queue leases nothing and loses nothing."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, exists
from sqlmodel import Session, col, select

from jobs.line_tables import PauseRow


def _rests(now: datetime | ColumnElement[datetime]) -> ColumnElement[bool]:
    return col(PauseRow.until).is_(None) | (col(PauseRow.until) > now)


def pause(
    session: Session, queue: str, now: datetime, *, reason: str = "", until: datetime | None = None
) -> PauseRow:
    """Lease nothing of this queue any more; a later pause takes the place of an earlier one."""
    row = session.merge(PauseRow(queue=queue, reason=reason, since=now, until=until))
    session.flush()
    return row


def said(row: PauseRow) -> str:
    """One sentence on a pause: since when, until when, why."""
    end = f" until {row.until:%Y-%m-%d %H:%M} UTC" if row.until else ""
    reason = f" ({row.reason})" if row.reason else ""
    return f"{row.queue} is paused since {row.since:%Y-%m-%d %H:%M} UTC{end}{reason}"


def resume(session: Session, queue: str) -> bool:
    """Whether this queue was paused; it is no more."""
    row = session.get(PauseRow, queue)
    if row is not None:
        session.delete(row)
        session.flush()
    return row is not None


def pauses(session: Session, now: datetime) -> dict[str, PauseRow]:
    """The pauses that hold now, by queue."""
    rows = session.exec(select(PauseRow).where(_rests(now)).order_by(col(PauseRow.queue)))
    return {row.queue: row for row in rows}


def paused_queues(session: Session, now: datetime) -> set[str]:
    """The queues that rest now."""
    return set(session.exec(select(PauseRow.queue).where(_rests(now))).all())


def is_paused(
    queue: str | ColumnElement[str], now: datetime | ColumnElement[datetime]
) -> ColumnElement[bool]:
    """The same question inside of another query."""
    return exists().where(col(PauseRow.queue) == queue, _rests(now))
