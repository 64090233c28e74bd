"""What each source took of a queue, hour by hour; counted where a lease ends, forgotten later."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, func
from sqlmodel import Session, col, select

from jobs.line_tables import UseRow
from jobs.tables import JobRow

WINDOW = timedelta(hours=24)
"""How far back a source's share of a queue is counted, to the hour."""


def count(session: Session, row: JobRow, seconds: float, now: datetime) -> None:
    """Add what an attempt took; its caller has the turn, so that nobody counts beside it."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    use = session.get(UseRow, (row.queue, hour, row.source))
    if use is None:
        use = UseRow(queue=row.queue, hour=hour, source=row.source)
    use.seconds += max(0.0, seconds)
    session.add(use)


def of_sources(session: Session, queue: str, now: datetime) -> dict[str, float]:
    """Seconds of a queue that each source used within `WINDOW`."""
    rows = session.exec(
        select(UseRow.source, func.sum(UseRow.seconds))
        .where(UseRow.queue == queue, col(UseRow.hour) > now - WINDOW)
        .group_by(UseRow.source)
    )
    return {source: float(seconds) for source, seconds in rows}


def forget(session: Session, now: datetime) -> int:
    """Drop what counts no more; how many rows."""
    old = delete(UseRow).where(col(UseRow.hour) < now - 2 * WINDOW)
    return int(session.execute(old).rowcount)  # type: ignore[attr-defined]
