"""Queries that put jobs in, look at them and change their minds; the caller commits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import cast

from sqlalchemy import func, text
from sqlmodel import Session, col, select

from jobs import lifecycle, tables
from jobs.errors import UsageError
from jobs.model import Kind, State
from jobs.payloads import by_dockerfile
from jobs.planner import BY_HAND, JobRequest
from jobs.store import approvals, fetch_places
from jobs.store.durations import Durations
from jobs.store.needs import let_go, open_needs, refresh_dependents, take_over
from jobs.store.results import is_made
from jobs.tables import JobNeedRow, JobRow

LIVE = [state.value for state in lifecycle.LIVE]
HELD = [state.value for state in lifecycle.HELD]
WAITING = [State.QUEUED.value, State.BLOCKED.value]

LARGEST_ID = 2**31 - 1
"""What a number of a row can be at most; every database of ours takes it."""


TURN = 7_346_110_483  # any number, the same for every process of forkscout


def take_turn(session: Session) -> None:
    """Let changes of who waits for whom happen one after the other, until this transaction ends.

    SQLite's writers do so anyway. Elsewhere two jobs that end at once would each see the other as
    open and never free what waits for both. Taken before the lock of any job's row.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(TURN)))


def enqueue(
    session: Session, requests: Iterable[JobRequest], now: datetime
) -> dict[str, JobRow | None]:
    """Queue what is not done and not already live; by identity, the job or None where it is done.

    Requests come after the ones they need. A build whose artifact is known and a model file that
    lies in the store of its rig need no job; a file for no rig may lie in any.
    """
    take_turn(session)
    durations = Durations(session)
    found: dict[str, JobRow | None] = {}
    for asked in requests:
        if asked.identity in found:
            continue
        request = fetch_places.placed(session, asked)
        live = live_with_identity(session, request.identity) or _waiting_twin(session, request)
        if live is not None:
            _hurry(session, live, request, now)
            _let_in(session, live, request, now)
            found[asked.identity] = live
        elif _is_done(session, request):
            found[asked.identity] = None
            let_go(session, request.identity)
        else:
            job = found[asked.identity] = _insert(session, request, found, durations, now)
            if request.kind is Kind.BUILD:
                approvals.hold(session, job, now)
    return found


def live_with_identity(session: Session, identity: str) -> JobRow | None:
    """The one job that is queued, blocked or running for this question."""
    query = select(JobRow).where(JobRow.identity == identity, text(tables.LIVE))
    return session.exec(query).one_or_none()


def _waiting_twin(session: Session, request: JobRequest) -> JobRow | None:
    """A publish that waits will show all there is; one that runs may have read already."""
    if request.kind is not Kind.PUBLISH:
        return None
    wanted = select(JobRow).where(JobRow.queue == request.queue, JobRow.kind == Kind.PUBLISH.value)
    waiting = (
        session.exec(wanted.where(text(each))).first() for each in (tables.IN_LINE, tables.PUT_OFF)
    )
    return next((row for row in waiting if row is not None), None)


def _hurry(session: Session, job: JobRow, request: JobRequest, now: datetime) -> None:
    """A more urgent request for the same question moves the waiting job and its needs up.

    Of two turns the earlier one holds. The job lasts as long as the longer of the two wishes; a
    person is one more reason for it.
    """
    if request.source == BY_HAND != job.source and "joined_at" not in job.cause:
        job.cause = {**job.cause, "joined_at": now.isoformat()}
        session.add(job)
    if job.state in HELD:
        return
    if request.lane < job.lane:
        job.lane = int(request.lane)
        job.ages_at = lifecycle.ages_at(job.lane, job.due_at)
    job.turn_at = min(job.turn_at, request.turn_at(now))
    if job.expires_at is not None:
        longer = request.expires_at is not None and request.expires_at <= job.expires_at
        job.expires_at = job.expires_at if longer else request.expires_at
    session.add(job)


def _let_in(session: Session, job: JobRow, request: JobRequest, now: datetime) -> None:
    """The same commit in a fork that is trusted is the same code: it need not wait for a person."""
    if job.blocked_by != lifecycle.NOT_APPROVED:
        return
    number, dockerfile = int(request.payload["revision_id"]), by_dockerfile(request.payload)
    if approvals.missing(session, number, now, dockerfile=dockerfile) is None:
        job.state, job.blocked_by, job.message, job.advice = State.QUEUED.value, None, "", ""
        job.payload, job.title = dict(request.payload), request.title
        session.add(job)


def _is_done(session: Session, request: JobRequest) -> bool:
    if request.kind is Kind.BUILD:
        return is_made(session, request.payload["build_identity"], request.payload["revision_id"])
    if request.kind is Kind.FETCH_MODEL:
        return fetch_places.is_held(session, request)
    return False


def _insert(
    session: Session,
    request: JobRequest,
    found: dict[str, JobRow | None],
    durations: Durations,
    now: datetime,
) -> JobRow:
    needs = [job for need in request.needs if (job := found.get(need)) is not None]
    waits_for = [*needs, *(job for need in request.after if (job := found.get(need)) is not None)]
    job = JobRow(
        kind=request.kind.value,
        queue=request.queue,
        state=(State.BLOCKED if waits_for else State.QUEUED).value,
        lane=int(request.lane),
        identity=request.identity,
        title=request.title,
        payload=dict(request.payload),
        reason=request.reason,
        source=request.source,
        cause=dict(request.cause),
        revision_id=request.payload.get("revision_id"),
        event_id=request.cause.get("event_id"),
        estimate_seconds=durations.likely_seconds(request),
        expires_at=request.expires_at,
        turn_at=request.turn_at(now),
        blocked_by=f"job:{waits_for[0].id}" if waits_for else None,
        created_at=now,
        due_at=now,
        ages_at=lifecycle.ages_at(request.lane, now),
    )
    session.add(job)
    session.flush()
    for need in waits_for:
        session.add(
            JobNeedRow(
                job_id=cast(int, job.id),
                needs_id=cast(int, need.id),
                settled=need not in needs,
            )
        )
    session.flush()
    take_over(session, job)
    return job


def was_tried(session: Session, identity: str) -> bool:
    """Whether a job with this identity exists in any state but cancelled or superseded."""
    gone = [State.CANCELLED.value, State.SUPERSEDED.value, State.EXPIRED.value]
    query = select(JobRow.id).where(JobRow.identity == identity, col(JobRow.state).not_in(gone))
    return session.exec(query.limit(1)).first() is not None


def job(session: Session, job_id: int) -> JobRow:
    """The job with this number; raises `UsageError` where there is none."""
    row = session.get(JobRow, job_id) if 0 < job_id <= LARGEST_ID else None
    if row is None:
        raise UsageError(f"there is no job {job_id}", advice="see `forkscout jobs --all`")
    return row


def _locked(session: Session, job_id: int) -> JobRow:
    """The job with this number as it stands now, in nobody else's hands until we are done."""
    take_turn(session)
    job(session, job_id)
    query = select(JobRow).where(JobRow.id == job_id).with_for_update()
    return session.exec(query.execution_options(populate_existing=True)).one()


def jobs(
    session: Session, *, states: Sequence[State] = (), kind: Kind | None = None, limit: int = 100
) -> Sequence[JobRow]:
    """Jobs in serving order: held first, then by lane and turn; ended ones newest first."""
    query = select(JobRow)
    if states:
        query = query.where(col(JobRow.state).in_([state.value for state in states]))
    if kind is not None:
        query = query.where(JobRow.kind == kind.value)
    rows = session.exec(query.order_by(col(JobRow.id).desc()).limit(limit)).all()
    return sorted(rows, key=_serving_order)


def _serving_order(row: JobRow) -> tuple[int, int, float, int]:
    number = cast(int, row.id)
    if row.state in HELD:
        return (0, row.lane, 0.0, number)
    if row.state in LIVE:
        return (1 if row.state == State.QUEUED else 2, row.lane, row.turn_at.timestamp(), number)
    return (3, 0, 0.0, -number)


def count_by_state(session: Session) -> dict[State, int]:
    """How many jobs stand in each state."""
    rows = session.exec(select(JobRow.state, func.count()).group_by(JobRow.state)).all()
    return {State(state): int(count) for state, count in rows}


def retry(session: Session, job_id: int, now: datetime) -> list[JobRow]:
    """Queue an ended job again, its attempts forgiven; so are the ended ones it waits for.

    The job first, then what was queued for it.
    """
    row = _locked(session, job_id)
    if row.state == State.BLOCKED.value:
        return [row, *_retry_needs(session, open_needs(session, job_id), now)]
    if row.state in LIVE or row.state == State.SUCCEEDED:
        raise UsageError(
            f"job {job_id} is {row.state}: only what ended without an answer is queued again",
            advice=f"see why it is where it is: `forkscout jobs --why {job_id}`",
        )
    if live_with_identity(session, row.identity) is not None:
        raise UsageError(
            f"job {job_id} is already queued again under another number",
            advice="see `forkscout jobs`",
        )
    waits_for = open_needs(session, job_id)
    row.state = (State.BLOCKED if waits_for else State.QUEUED).value
    row.blocked_by = f"job:{waits_for[0].id}" if waits_for else None
    row.attempts, row.due_at, row.finished_at = 0, now, None
    row.put_off, row.ages_at, row.expires_at = False, lifecycle.ages_at(row.lane, now), None
    row.failure_class, row.blame, row.message, row.advice = None, None, "", ""
    row.cancel_requested = False
    session.add(row)
    queued = _retry_needs(session, waits_for, now)
    refresh_dependents(session, row)
    return [row, *queued]


def _retry_needs(session: Session, needs: Sequence[JobRow], now: datetime) -> list[JobRow]:
    over = [cast(int, need.id) for need in needs if need.state not in LIVE]
    return [row for number in over for row in retry(session, number, now)]


def cancel(session: Session, job_id: int, now: datetime) -> JobRow:
    """End a waiting job at once; a running one is asked to stop and ends within seconds."""
    row = _locked(session, job_id)
    if row.state not in LIVE:
        raise UsageError(
            f"job {job_id} has already ended ({row.state})",
            advice=f"see what became of it: `forkscout show {job_id}`",
        )
    if row.state in HELD:
        row.cancel_requested = True
    else:
        row.state, row.finished_at, row.blocked_by = State.CANCELLED.value, now, None
        row.message = "cancelled before it started"
        refresh_dependents(session, row)
    session.add(row)
    return row


def unblock(session: Session, cause: str, queue: str) -> int:
    """Queue again what was blocked by a cause that is gone; how many jobs that were."""
    take_turn(session)
    query = select(JobRow).where(
        JobRow.state == State.BLOCKED.value, JobRow.blocked_by == cause, JobRow.queue == queue
    )
    rows = session.exec(query).all()
    for row in rows:
        row.state, row.blocked_by, row.message, row.advice = State.QUEUED.value, None, "", ""
        row.failure_class, row.blame = None, None
        session.add(row)
    return len(rows)
