"""Read queries on what events led to: jobs, and what was left out; frozen values, no commits."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, col, select

from jobs.planning_tables import LeftOutRow
from jobs.store import rules
from jobs.tables import EngineRow, EventRow, JobRow


@dataclass(frozen=True)
class LedJob:
    """A job that an event led to; `baseline_of` is the job whose result it is compared with."""

    id: int
    kind: str
    title: str
    state: str
    lane: int
    reason: str
    baseline_of: int | None


@dataclass(frozen=True)
class ShownLeftOut:
    """What was not queued; `ending` says what became of it."""

    what: str
    why: str
    detail: str
    value: float | None
    left_at: datetime
    ending: str


@dataclass(frozen=True)
class LedTo:
    """All that came of one event."""

    jobs: tuple[LedJob, ...] = ()
    left_out: tuple[ShownLeftOut, ...] = ()


@dataclass(frozen=True)
class EventDetail:
    """One event with all that came of it."""

    id: int
    key: str
    kind: str
    title: str
    engine: str | None
    seen_at: datetime
    happened_at: datetime | None
    planned: bool
    led_to: LedTo


def led_to(session: Session, event_ids: Collection[int]) -> dict[int, LedTo]:
    """What came of each of these events."""
    jobs = rules.jobs_of_events(session, event_ids)
    left: dict[int, list[LeftOutRow]] = {number: [] for number in event_ids}
    for row in rules.left_out(session, event_ids=event_ids, closed=True):
        left[row.event_id].append(row)
    return {
        number: LedTo(
            tuple(_job(row) for row in jobs[number]), tuple(_left_out(row) for row in left[number])
        )
        for number in event_ids
    }


def event(session: Session, event_id: int) -> EventDetail | None:
    """One event, or None."""
    row = session.get(EventRow, event_id)
    if row is None:
        return None
    engine = session.get(EngineRow, row.engine_id) if row.engine_id else None
    return EventDetail(
        id=event_id,
        key=row.key,
        kind=row.kind,
        title=row.title,
        engine=engine.name if engine else None,
        seen_at=row.seen_at,
        happened_at=row.happened_at,
        planned=row.planned,
        led_to=led_to(session, [event_id])[event_id],
    )


def event_ids(session: Session) -> tuple[int, ...]:
    """Every event that led to a job or left something out, oldest first."""
    cause = col(JobRow.event_id)
    asked = set(session.exec(select(cause).where(cause.is_not(None)).distinct()))
    left = set(session.exec(select(LeftOutRow.event_id).distinct()))
    known = session.exec(select(EventRow.id).order_by(col(EventRow.id)))
    return tuple(number for number in known if number in asked | left and number is not None)


def _job(row: JobRow) -> LedJob:
    baseline = row.cause.get("baseline_of")
    return LedJob(
        id=row.id or 0,
        kind=row.kind,
        title=row.title,
        state=row.state,
        lane=row.lane,
        reason=row.reason,
        baseline_of=baseline if isinstance(baseline, int) else None,
    )


def _left_out(row: LeftOutRow) -> ShownLeftOut:
    return ShownLeftOut(
        what=row.what,
        why=row.why,
        detail=row.detail,
        value=row.value,
        left_at=row.left_at,
        ending=row.ending,
    )
