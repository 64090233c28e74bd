"""Job rows as the values that pages show, with what holds them and what came of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlmodel import Session, col, select

from jobs.model import State
from jobs.store.expectations import Expected
from jobs.store.shown import ShownJob
from jobs.tables import JobNeedRow, JobRow, ResultRow

HIDDEN = {"id", "payload", "fence", "ages_at", "revision_id", "event_id"}


def shown_jobs(session: Session, rows: Sequence[JobRow]) -> tuple[ShownJob, ...]:
    """The rows in their order, needs and results looked up."""
    ids = [row.id for row in rows]
    needs = _needs(session, ids)
    results = dict(
        session.exec(
            select(ResultRow.job_id, ResultRow.id).where(col(ResultRow.job_id).in_(ids))
        ).all()
    )
    return tuple(
        ShownJob(
            **row.model_dump(exclude=HIDDEN),
            id=row.id or 0,
            waits_for=needs.get(row.id or 0, ()),
            result_id=results.get(row.id or 0),
        )
        for row in rows
    )


def expected(shown: ShownJob, found: Expected, now: datetime) -> ShownJob:
    """The job with its place, and with when it may start and end, to the minute."""
    return replace(
        shown,
        position=found.position,
        likely_start_at=_minute(now, found.when.starts_in),
        likely_end_at=_minute(now, found.when.ends_in),
        expected=str(found.when),
    )


def _minute(now: datetime, span: timedelta | None) -> datetime | None:
    if span is None:
        return None
    return (now + span + timedelta(seconds=30)).replace(second=0, microsecond=0)


def _needs(session: Session, ids: Iterable[int | None]) -> dict[int, tuple[int, ...]]:
    """Which jobs each of these still waits for."""
    needs: dict[int, list[int]] = defaultdict(list)
    for job_id, needs_id in session.exec(
        select(JobNeedRow.job_id, JobNeedRow.needs_id)
        .join(JobRow, col(JobRow.id) == JobNeedRow.needs_id)
        .where(col(JobNeedRow.job_id).in_(ids), col(JobRow.state) != State.SUCCEEDED)
        .order_by(col(JobNeedRow.needs_id))
    ):
        needs[job_id].append(needs_id)
    return {job_id: tuple(found) for job_id, found in needs.items()}
