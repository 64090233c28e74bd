"""Failures by attempt, and the list of those that nobody has understood yet; never commits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, select

from jobs.dialect import wire
from jobs.errors import JobFailure, UsageError, is_unexplained
from jobs.failure_tables import FailureRow
from jobs.tables import JobRow

MOST_LINES = 50
LINE_CHARS = 2000


def record(
    session: Session, job: JobRow, failure: JobFailure, message: str, now: datetime
) -> FailureRow:
    """Keep how this attempt ended."""
    row = FailureRow(
        job_id=job.id or 0,
        fence=job.fence,
        failure_class=wire.plain(failure.failure_class)[:80],
        blame=failure.blame.value,
        phase=wire.plain(failure.phase)[:200],
        ending=wire.plain(failure.ending)[:200],
        message=message,
        advice=wire.plain(failure.advice),
        lines=[wire.plain(line)[:LINE_CHARS] for line in failure.lines[-MOST_LINES:]],
        unknown=is_unexplained(failure.failure_class),
        created_at=now,
    )
    session.add(row)
    return row


def listed(
    session: Session, *, everything: bool = False, limit: int = 50
) -> Sequence[tuple[FailureRow, JobRow]]:
    """Unexplained failures that nobody has read, or all of them; newest first."""
    query = select(FailureRow, JobRow).join(JobRow, col(JobRow.id) == col(FailureRow.job_id))
    if not everything:
        query = query.where(col(FailureRow.unknown), ~col(FailureRow.reviewed))
    return session.exec(query.order_by(col(FailureRow.id).desc()).limit(limit)).all()


def failure(session: Session, number: int) -> FailureRow:
    """One failure by its number. Raises UsageError for one that was never stored."""
    row = session.get(FailureRow, number) if 0 < number < 2**31 else None
    if row is None:
        raise UsageError(
            f"there is no failure {number}", advice="forkscout failures --all lists them"
        )
    return row


def review(session: Session, number: int) -> FailureRow:
    """Take one off the list: somebody has read it."""
    row = failure(session, number)
    row.reviewed = True
    session.add(row)
    return row
