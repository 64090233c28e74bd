"""Read queries for the queue, a job, the engines and the front page; never commits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, func, literal, tuple_
from sqlmodel import Session, SQLModel, col, select

from jobs.columns import UtcDateTime
from jobs.model import Kind, State
from jobs.sightings import RepositoryRow
from jobs.store.board import newest_entries
from jobs.store.refs import repositories_of_engines
from jobs.store.shown import (
    Front,
    Queue,
    ShownEngine,
    ShownEvent,
    ShownJob,
    ShownRevision,
    ShownWorker,
)
from jobs.store.source_health import outlook
from jobs.tables import (
    BuildRow,
    EngineRow,
    EventRow,
    JobNeedRow,
    JobRow,
    ResultRow,
    RevisionRow,
    WorkerRow,
)

LIVE = (State.QUEUED, State.BLOCKED, State.LEASED, State.RUNNING)
BROKEN = (State.FAILED, State.DEAD)
ENDED_LAST = (
    func.coalesce(JobRow.finished_at, JobRow.created_at).desc(),
    col(JobRow.id).desc(),
)


def queue(session: Session, *, waiting: int = 200, ended: int = 25) -> Queue:
    """Live jobs in serving order, each with its place in its own queue, and what ended last."""
    served = select(JobRow).order_by(col(JobRow.lane), col(JobRow.turn_at), col(JobRow.id))
    queued = session.exec(served.where(JobRow.state == State.QUEUED).limit(waiting)).all()
    held = session.exec(
        served.where(col(JobRow.state).in_((State.BLOCKED, State.LEASED, State.RUNNING)))
    ).all()
    past = session.exec(
        select(JobRow).where(col(JobRow.state).not_in(LIVE)).order_by(*ENDED_LAST).limit(ended)
    ).all()
    shown = _shown(session, [*queued, *held, *past])
    places: Counter[str] = Counter()
    in_line = []
    for job in shown[: len(queued)]:
        places[job.queue] += 1
        in_line.append(replace(job, position=places[job.queue]))
    workers = session.exec(select(WorkerRow).order_by(WorkerRow.queue, WorkerRow.name))
    return Queue(
        running=tuple(job for job in shown if job.state in (State.LEASED, State.RUNNING)),
        waiting=tuple(in_line),
        waiting_total=_count(session, JobRow, col(JobRow.state) == State.QUEUED),
        blocked=tuple(job for job in shown if job.state == State.BLOCKED),
        ended=tuple(job for job in shown if job.state not in LIVE),
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
        outlook=outlook(session),
    )


def jobs(session: Session, *, limit: int) -> tuple[ShownJob, ...]:
    """The jobs made last, newest first."""
    newest = select(JobRow).order_by(col(JobRow.id).desc()).limit(limit)
    return _shown(session, session.exec(newest).all())


def job(session: Session, job_id: int) -> ShownJob | None:
    """One job, or None; a queued one knows its place."""
    row = session.get(JobRow, job_id)
    if row is None:
        return None
    shown = _shown(session, [row])[0]
    if row.state != State.QUEUED:
        return shown
    earlier = _count(
        session,
        JobRow,
        col(JobRow.state) == State.QUEUED,
        col(JobRow.queue) == row.queue,
        tuple_(col(JobRow.lane), col(JobRow.turn_at), col(JobRow.id))
        < tuple_(literal(row.lane), literal(row.turn_at, type_=UtcDateTime()), literal(row.id)),
    )
    return replace(shown, position=earlier + 1)


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
        .where(col(JobRow.state).in_(BROKEN), col(JobRow.kind) != Kind.PUBLISH)
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
        failures=_shown(session, failures),
        engines=_count(session, EngineRow),
        revisions=_count(session, RevisionRow),
        builds=_count(session, BuildRow),
        results_total=_count(session, ResultRow),
    )


def _fork_id(engine_id: int | None, places: Mapping[int, RepositoryRow]) -> int | None:
    place = places.get(engine_id or 0)
    return place.id if place else None


def _count(session: Session, table: type[SQLModel], *where: ColumnElement[bool]) -> int:
    return session.exec(select(func.count()).select_from(table).where(*where)).one()


def _shown(session: Session, rows: Sequence[JobRow]) -> tuple[ShownJob, ...]:
    ids = [row.id for row in rows]
    needs = _needs(session, ids)
    results = dict(
        session.exec(
            select(ResultRow.job_id, ResultRow.id).where(col(ResultRow.job_id).in_(ids))
        ).all()
    )
    return tuple(
        ShownJob(
            **row.model_dump(exclude={"id", "payload", "fence"}),
            id=row.id or 0,
            waits_for=needs.get(row.id or 0, ()),
            result_id=results.get(row.id or 0),
        )
        for row in rows
    )


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
