"""Who waits for whom: what holds a job, and whom the end of one frees; the caller commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import cast

from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from jobs import lifecycle
from jobs.model import State
from jobs.tables import JobNeedRow, JobRow

_LIVE = [state.value for state in lifecycle.LIVE]


def needs_of(session: Session, job_id: int) -> Sequence[JobRow]:
    """The jobs this one waits for, ended ones among them."""
    query = (
        select(JobRow)
        .join(JobNeedRow, col(JobNeedRow.needs_id) == col(JobRow.id))
        .where(JobNeedRow.job_id == job_id)
    )
    return session.exec(query.order_by(col(JobRow.id))).all()


def open_needs(session: Session, job_id: int) -> list[JobRow]:
    """The needs that still hold this job: not succeeded, or not ended where an end is enough."""
    return open_needs_of(session, [job_id])[job_id]


def open_needs_of(session: Session, job_ids: Collection[int]) -> dict[int, list[JobRow]]:
    """The same of many jobs at once."""
    query = (
        select(JobNeedRow.job_id, JobRow)
        .join(JobRow, col(JobNeedRow.needs_id) == col(JobRow.id))
        .where(
            col(JobNeedRow.job_id).in_(job_ids),
            (col(JobNeedRow.settled).is_(False) & (col(JobRow.state) != State.SUCCEEDED.value))
            | (col(JobNeedRow.settled).is_(True) & col(JobRow.state).in_(_LIVE)),
        )
    )
    found: dict[int, list[JobRow]] = {number: [] for number in job_ids}
    for number, need in session.exec(query.order_by(col(JobRow.id))):
        found[number].append(need)
    return found


def stage_of(session: Session, job_id: int) -> dict[State, int]:
    """How the jobs that this one came after have ended, counted in the rows."""
    return dict(Counter(State(need.state) for need in needs_of(session, job_id)))


def dependents_of(session: Session, job_id: int) -> Sequence[JobRow]:
    """The jobs that wait for this one."""
    query = (
        select(JobRow)
        .join(JobNeedRow, col(JobNeedRow.job_id) == col(JobRow.id))
        .where(JobNeedRow.needs_id == job_id)
    )
    return session.exec(query.order_by(col(JobRow.id))).all()


def refresh_dependents(session: Session, ended: JobRow) -> None:
    """Free the jobs that waited for this one, or tell them what holds them now."""
    session.flush()
    for dependent in dependents_of(session, cast(int, ended.id)):
        if _waits(dependent):
            _refresh(session, dependent)


def _refresh(session: Session, dependent: JobRow) -> None:
    holding = open_needs(session, cast(int, dependent.id))
    if not holding:
        dependent.state, dependent.blocked_by = State.QUEUED.value, None
        dependent.message = ""
    else:
        over = [need for need in holding if need.state not in _LIVE]
        dependent.blocked_by = f"job:{(over or holding)[0].id}"
        dependent.message = held_by(holding) if over else ""
    session.add(dependent)
    session.flush()


def take_over(session: Session, job: JobRow) -> None:
    """Let what is blocked by earlier, ended jobs of the same question wait for this one instead."""
    earlier = select(JobRow.id).where(JobRow.identity == job.identity, JobRow.id != job.id)
    if session.exec(earlier.limit(1)).first() is None:
        return
    dependent, ended = aliased(JobRow), aliased(JobRow)
    query = (
        select(JobNeedRow, dependent)
        .join(ended, col(ended.id) == col(JobNeedRow.needs_id))
        .join(dependent, col(dependent.id) == col(JobNeedRow.job_id))
        .where(
            ended.identity == job.identity,
            col(ended.state).not_in([*_LIVE, State.SUCCEEDED.value]),
            dependent.state == State.BLOCKED.value,
        )
    )
    for need, waiting in session.exec(query).all():
        session.delete(need)
        session.add(
            JobNeedRow(job_id=need.job_id, needs_id=cast(int, job.id), settled=need.settled)
        )
        waiting.blocked_by, waiting.message = f"job:{job.id}", ""
        session.add(waiting)
    session.flush()


def held_by(needs: Sequence[JobRow]) -> str:
    """What open needs keep a job from, all of them, with what frees it from the ended ones."""
    waits: list[str] = []
    says: list[str] = []
    for need in needs:
        cause = f" ({need.failure_class})" if need.failure_class else ""
        if need.state in _LIVE:
            waits.append(str(need.id))
        else:
            says.append(
                f"blocked by {need.state} job {need.id}{cause}: `forkscout retry {need.id}`"
            )
    if waits:
        says.append(f"waits for job{'s' if len(waits) > 1 else ''} {', '.join(waits)}")
    return "; ".join(says)


def let_go(session: Session, identity: str) -> None:
    """Free what ended jobs of this question hold: it was answered elsewhere."""
    query = select(JobRow).where(
        JobRow.identity == identity, col(JobRow.state).not_in([*_LIVE, State.SUCCEEDED.value])
    )
    for ended in session.exec(query).all():
        needs = select(JobNeedRow).where(JobNeedRow.needs_id == ended.id)
        waiting = [each for each in dependents_of(session, cast(int, ended.id)) if _waits(each)]
        numbers = {each.id for each in waiting}
        for need in session.exec(needs).all():
            if need.job_id in numbers:
                session.delete(need)
        session.flush()
        for each in waiting:
            _refresh(session, each)


def _waits(job: JobRow) -> bool:
    return job.state == State.BLOCKED.value
