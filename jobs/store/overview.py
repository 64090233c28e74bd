"""Read queries for the queue, a job, the engines and the front page; never commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, TextClause, func, text
from sqlmodel import Session, SQLModel, col, select

from jobs.lifecycle import LIVE
from jobs.model import Kind
from jobs.sightings import RepositoryRow
from jobs.store import line, pauses, rigs
from jobs.store.board import newest_entries
from jobs.store.expectations import Expectations
from jobs.store.refs import repositories_of_engines
from jobs.store.shown import (
    Front,
    Queue,
    ShownEngine,
    ShownEvent,
    ShownJob,
    ShownPause,
    ShownQuarantine,
    ShownRevision,
    ShownWorker,
)
from jobs.store.shown_jobs import expected, shown_jobs
from jobs.store.source_health import outlook
from jobs.tables import (
    BLOCKED,
    ENDED,
    BuildRow,
    EngineRow,
    EventRow,
    JobRow,
    ResultRow,
    RevisionRow,
    WorkerRow,
)
from jobs.tables import BROKEN as BROKEN_ROWS

BROKEN = text(BROKEN_ROWS)
ENDED_LAST = (col(JobRow.finished_at).desc(), col(JobRow.id).desc())


def queue(session: Session, *, now: datetime, waiting: int = 200, ended: int = 25) -> Queue:
    """Live jobs in serving order, each with its place in its own queue, and what ended last."""
    held = line.held_rows(session)
    blocked = line.blocked_rows(session, most=waiting)
    past = session.exec(select(JobRow).where(text(ENDED)).order_by(*ENDED_LAST).limit(ended)).all()
    in_line = line.heads(session, most=waiting)
    later = line.put_off_rows(session, most=waiting - len(in_line))
    rows = [*in_line, *later, *held, *blocked]
    shown = {job.id: job for job in shown_jobs(session, [*rows, *past])}
    for found in Expectations(session, now).in_order(rows):
        shown[found.job_id] = expected(shown[found.job_id], found, now)
    workers = session.exec(select(WorkerRow).order_by(WorkerRow.queue, WorkerRow.name))
    return Queue(
        running=_pick(shown, held),
        waiting=_pick(shown, [*in_line, *later]),
        waiting_total=_count(session, JobRow, line.STANDS)
        + _count(session, JobRow, line.WAITS_FOR_ITS_TIME),
        blocked=_pick(shown, blocked),
        blocked_total=_count(session, JobRow, text(BLOCKED)),
        ended=_pick(shown, past),
        workers=tuple(
            ShownWorker(
                name=row.name,
                queue=row.queue,
                sandbox=row.sandbox,
                draining=row.draining,
                beat_at=row.beat_at,
            )
            for row in workers
        ),
        pauses=tuple(
            ShownPause(row.queue, row.reason, row.since, row.until)
            for row in pauses.pauses(session, now).values()
        ),
        quarantines=tuple(
            ShownQuarantine(row.rig, row.why, row.since)
            for row in rigs.quarantines(session).values()
        ),
        outlook=outlook(session),
    )


def _pick(shown: Mapping[int, ShownJob], rows: Iterable[JobRow]) -> tuple[ShownJob, ...]:
    return tuple(shown[row.id or 0] for row in rows)


def jobs(session: Session, *, now: datetime, limit: int) -> tuple[ShownJob, ...]:
    """The jobs made last, newest first; those that stand in line know their places."""
    newest = select(JobRow).order_by(col(JobRow.id).desc()).limit(limit)
    rows = session.exec(newest).all()
    live = [row for row in rows if row.state in LIVE]
    likely = {each.job_id: each for each in Expectations(session, now).each(live)}
    return tuple(
        expected(job, likely[job.id], now) if job.id in likely else job
        for job in shown_jobs(session, rows)
    )


def job(session: Session, job_id: int, *, now: datetime) -> ShownJob | None:
    """One job, or None; one that stands in line knows its place."""
    row = session.get(JobRow, job_id)
    if row is None:
        return None
    shown = shown_jobs(session, [row])[0]
    if row.state not in LIVE:
        return shown
    return expected(shown, Expectations(session, now).alone(row), now)


def job_ids(session: Session) -> tuple[int, ...]:
    """Every job there is, oldest first."""
    return tuple(i for i in session.exec(select(JobRow.id).order_by(col(JobRow.id))) if i)


def revisions(session: Session, *, engine_id: int | None = None) -> dict[int, list[ShownRevision]]:
    """Revisions by engine, newest first; of one engine where asked."""
    builds = dict(
        session.exec(
            select(BuildRow.revision_id, func.count()).group_by(col(BuildRow.revision_id))
        ).all()
    )
    results = dict(
        session.exec(
            select(ResultRow.revision_id, func.max(ResultRow.id)).group_by(
                col(ResultRow.revision_id)
            )
        ).all()
    )
    query = select(RevisionRow).order_by(
        col(RevisionRow.order_key).desc(),
        col(RevisionRow.first_seen_at).desc(),
        col(RevisionRow.id).desc(),
    )
    if engine_id is not None:
        query = query.where(RevisionRow.engine_id == engine_id)
    found: dict[int, list[ShownRevision]] = defaultdict(list)
    for row in session.exec(query):
        found[row.engine_id].append(
            ShownRevision(
                commit=row.commit,
                label=row.label,
                committed_at=row.committed_at,
                first_seen_at=row.first_seen_at,
                builds=builds.get(row.id or 0, 0),
                newest_result_id=results.get(row.id or 0),
            )
        )
    return found


def engines(session: Session) -> tuple[ShownEngine, ...]:
    """The engines that are watched, then the retired ones, with their revisions, newest first."""
    known = revisions(session)
    places = repositories_of_engines(session)
    return tuple(
        ShownEngine(
            name=row.name,
            family=row.family,
            repo=row.repo,
            package=row.package,
            parent=row.parent,
            trust=row.trust,
            branches=tuple(row.branches),
            retired=row.retired,
            revisions=tuple(known.get(row.id or 0, ())),
            fork_id=_fork_id(row.id, places),
        )
        for row in session.exec(select(EngineRow).order_by(col(EngineRow.retired), EngineRow.name))
    )


def front(session: Session, *, limit: int = 8) -> Front:
    """What changed lately, and how much there is."""
    places = repositories_of_engines(session)
    events = session.exec(
        select(EventRow, EngineRow.name)
        .join(EngineRow, col(EngineRow.id) == EventRow.engine_id, isouter=True)
        .order_by(col(EventRow.seen_at).desc(), col(EventRow.id).desc())
        .limit(limit)
    )
    failures = session.exec(
        select(JobRow)
        .where(BROKEN, col(JobRow.kind) != Kind.PUBLISH)
        .order_by(*ENDED_LAST)
        .limit(limit)
    ).all()
    return Front(
        events=tuple(
            ShownEvent(
                kind=row.kind,
                title=row.title,
                engine=name,
                seen_at=row.seen_at,
                fork_id=_fork_id(row.engine_id, places),
            )
            for row, name in events
        ),
        results=newest_entries(session, limit=limit),
        failures=shown_jobs(session, failures),
        engines=_count(session, EngineRow),
        revisions=_count(session, RevisionRow),
        builds=_count(session, BuildRow),
        results_total=_count(session, ResultRow),
    )


def _fork_id(engine_id: int | None, places: Mapping[int, RepositoryRow]) -> int | None:
    place = places.get(engine_id or 0)
    return place.id if place else None


def _count(
    session: Session, table: type[SQLModel], *where: ColumnElement[bool] | TextClause
) -> int:
    return session.exec(select(func.count()).select_from(table).where(*where)).one()
