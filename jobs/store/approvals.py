"""Whose code a person let in: approvals of exact commits, and what waits for one; no commit.

An engine that a watch list does not trust by itself, or that no list names any more, is built at
an approved commit alone; so are a pull request and a Dockerfile of any engine. What is newer needs
a word of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from sqlmodel import Session, col, select

from jobs import lifecycle
from jobs.build_tables import ApprovalRow
from jobs.errors import UsageError
from jobs.lifecycle import NOT_APPROVED
from jobs.model import Kind, State, Trust
from jobs.payloads import by_dockerfile
from jobs.store import catalog
from jobs.store.needs import refresh_dependents
from jobs.tables import EngineRow, JobRow, RevisionRow

DEFAULT_DAYS = 14.0
MOST_DAYS = 365.0
SHORTEST_PREFIX = 12
"""Letters of a sha that a person may give for it, among the commits that are known."""

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PREFIX = re.compile(rf"[0-9a-f]{{{SHORTEST_PREFIX},64}}")


@dataclass(frozen=True)
class Missing:
    """Why code may not run yet, and the command that lets it."""

    says: str
    advice: str


@dataclass(frozen=True)
class Approval:
    """One word of a person; `state` is standing, expired or withdrawn."""

    id: int
    engine: str
    commit: str
    label: str
    approved_by: str
    note: str
    approved_at: datetime
    expires_at: datetime
    withdrawn_at: datetime | None
    withdrawn_by: str
    state: str


@dataclass(frozen=True)
class Waiting:
    """A build that waits for a person; who approves it types `engine@commit`."""

    job_id: int
    engine: str
    commit: str
    label: str
    since: datetime
    asked_by: str
    repo: str


@dataclass(frozen=True)
class Decided:
    """What a person's word did: the approvals it made or ended, the jobs it freed or held."""

    approvals: tuple[ApprovalRow, ...]
    jobs: tuple[JobRow, ...]


def needs_word(engine: EngineRow, revision: RevisionRow, *, dockerfile: bool = False) -> bool:
    """Whether a person has to approve this commit of the engine.

    Trust in an engine is trust in its maintainers: not in who opens a pull request, and not beyond
    the cage, which the lines of a Dockerfile do not run in.
    """
    if engine.trust == Trust.AUTO:
        return engine.retired or revision.proposed or dockerfile
    return engine.trust == Trust.APPROVE


def missing(
    session: Session, revision_id: int, now: datetime, *, dockerfile: bool = False
) -> Missing | None:
    """What keeps a revision from being built, perhaps by its Dockerfile; None if nothing does."""
    engine, revision = _subject(session, revision_id)
    if not needs_word(engine, revision, dockerfile=dockerfile) or _standing(
        session, engine, revision.commit, now
    ):
        return None
    place = f"{engine.name}@{revision.commit}"
    newest = _newest(session, engine, revision.commit)
    says = f"{engine.name} at {revision.commit[:12]} waits for a person's approval"
    if newest is not None and newest.withdrawn_at is not None:
        says = f"{says}: that of {newest.approved_by} was withdrawn by {newest.withdrawn_by}"
    elif newest is not None:
        says = (
            f"{says}: that of {newest.approved_by} ended at {newest.expires_at:%Y-%m-%d %H:%M} UTC"
        )
    return Missing(says, f"look at that commit, then: forkscout approve {place}")


def taken_back(session: Session, revision_id: int) -> Missing | None:
    """What keeps a finished build from being run: a person took their word back."""
    engine, revision = _subject(session, revision_id)
    newest = _newest(session, engine, revision.commit)
    if newest is None or newest.withdrawn_at is None:
        return None
    return Missing(
        f"the approval of {engine.name} at {revision.commit[:12]} was withdrawn "
        f"by {newest.withdrawn_by}",
        f"to run it again: forkscout approve {engine.name}@{revision.commit}",
    )


def approve(
    session: Session,
    place: str,
    *,
    by: str,
    now: datetime,
    days: float = DEFAULT_DAYS,
    note: str = "",
) -> Decided:
    """Let one exact commit be built until `days` from now; what waited for that is queued."""
    if not 0 < days <= MOST_DAYS:
        raise UsageError(f"{days:g} days", advice=f"an approval holds up to {MOST_DAYS:.0f} days")
    engine, commit = _place(session, place)
    if engine.trust == Trust.NEVER:
        raise UsageError(
            f"{engine.name} is never built: its trust is 'never'",
            advice="change `trust` in the watch list and import it again",
        )
    row = ApprovalRow(
        engine_id=cast(int, engine.id),
        commit=commit,
        approved_by=by,
        note=note,
        approved_at=now,
        expires_at=now + timedelta(days=days),
    )
    session.add(row)
    session.flush()
    freed = [job for job in _jobs_of(session, engine, commit) if job.blocked_by == NOT_APPROVED]
    for job in freed:
        job.state, job.blocked_by, job.message, job.advice = State.QUEUED.value, None, "", ""
        job.failure_class, job.blame = None, None
        session.add(job)
    session.flush()
    return Decided((row,), tuple(freed))


def withdraw(session: Session, place: str, *, by: str, now: datetime) -> Decided:
    """Take back every word on one commit: what waits to be built waits for a person again.

    What runs of it is asked to stop.
    """
    engine, commit = _place(session, place)
    rows = [row for row in _all(session, engine, commit) if _state(row, now) == "standing"]
    if not rows:
        raise UsageError(
            f"no approval of {engine.name} at {commit[:12]} stands",
            advice="see forkscout approvals",
        )
    for row in rows:
        row.withdrawn_at, row.withdrawn_by = now, by
        session.add(row)
    session.flush()
    held = [job for job in _jobs_of(session, engine, commit) if _stop(session, job, now)]
    session.flush()
    return Decided(tuple(rows), tuple(held))


def _stop(session: Session, job: JobRow, now: datetime) -> bool:
    """Hold a build that waits or ask one that runs to stop; whether it lacks a word."""
    if job.state == State.QUEUED.value:
        return hold(session, job, now)
    found = _missing(session, job, now)
    if found is not None and State(job.state) in lifecycle.HELD:
        job.cancel_requested = True
        session.add(job)
    return found is not None


def hold(session: Session, job: JobRow, now: datetime) -> bool:
    """Block a queued build that lacks a person's word; whether it does."""
    found = _missing(session, job, now)
    if found is None:
        return False
    lifecycle.check_move(State(job.state), State.BLOCKED)
    job.state, job.blocked_by = State.BLOCKED.value, NOT_APPROVED
    job.message, job.advice = found.says, found.advice
    session.add(job)
    session.flush()
    refresh_dependents(session, job)
    return True


def standing_commits(session: Session, engine: EngineRow, now: datetime) -> list[str]:
    """The commits of an engine that a person let in, and whose word holds."""
    query = select(ApprovalRow).where(ApprovalRow.engine_id == engine.id)
    rows = session.exec(query.order_by(col(ApprovalRow.id))).all()
    return sorted({row.commit for row in rows if _state(row, now) == "standing"})


def approvals(session: Session, now: datetime, *, everything: bool = False) -> list[Approval]:
    """Words that stand, newest first; with `everything`, those too that ended."""
    query = select(ApprovalRow, EngineRow).join(EngineRow).order_by(col(ApprovalRow.id).desc())
    found = []
    for row, engine in session.exec(query):
        state = _state(row, now)
        if everything or state == "standing":
            revision = _revision(session, row.engine_id, row.commit)
            label = revision.label if revision else ""
            values = row.model_dump(exclude={"engine_id"})
            found.append(Approval(engine=engine.name, label=label, state=state, **values))
    return found


def waiting(session: Session) -> list[Waiting]:
    """Builds that wait for a person, oldest first."""
    query = select(JobRow).where(
        JobRow.state == State.BLOCKED.value, JobRow.blocked_by == NOT_APPROVED
    )
    return [_waits(session, job) for job in session.exec(query.order_by(col(JobRow.id)))]


def asked_for(session: Session, job_id: int) -> Waiting | None:
    """What a job waits for a person's word on; None where it does not."""
    job = session.get(JobRow, job_id)
    if job is None or (job.state, job.blocked_by) != (State.BLOCKED.value, NOT_APPROVED):
        return None
    return _waits(session, job)


def _waits(session: Session, job: JobRow) -> Waiting:
    engine, revision = _subject(session, int(job.payload["revision_id"]))
    return Waiting(
        job_id=job.id or 0,
        engine=engine.name,
        commit=revision.commit,
        label=revision.label,
        since=job.created_at,
        asked_by=job.source or job.reason,
        repo=engine.repo or "",
    )


def _missing(session: Session, build: JobRow, now: datetime) -> Missing | None:
    number = int(build.payload["revision_id"])
    return missing(session, number, now, dockerfile=by_dockerfile(build.payload))


def _subject(session: Session, revision_id: int) -> tuple[EngineRow, RevisionRow]:
    revision = session.get_one(RevisionRow, revision_id)
    return session.get_one(EngineRow, revision.engine_id), revision


def _revision(session: Session, engine_id: int, commit: str) -> RevisionRow | None:
    query = select(RevisionRow).where(
        RevisionRow.engine_id == engine_id, RevisionRow.commit == commit
    )
    return session.exec(query).first()


def _all(session: Session, engine: EngineRow, commit: str) -> Sequence[ApprovalRow]:
    query = select(ApprovalRow).where(
        ApprovalRow.engine_id == engine.id, ApprovalRow.commit == commit
    )
    return session.exec(query.order_by(col(ApprovalRow.id))).all()


def _standing(
    session: Session, engine: EngineRow, commit: str, now: datetime
) -> ApprovalRow | None:
    rows = _all(session, engine, commit)
    return next((row for row in rows if _state(row, now) == "standing"), None)


def _newest(session: Session, engine: EngineRow, commit: str) -> ApprovalRow | None:
    return next(reversed(_all(session, engine, commit)), None)


def _state(row: ApprovalRow, now: datetime) -> str:
    if row.withdrawn_at is not None:
        return "withdrawn"
    return "standing" if row.expires_at > now else "expired"


def _jobs_of(session: Session, engine: EngineRow, commit: str) -> list[JobRow]:
    """Live builds of one commit of an engine."""
    revision = _revision(session, cast(int, engine.id), commit)
    if revision is None:
        return []
    query = select(JobRow).where(
        JobRow.kind == Kind.BUILD.value,
        col(JobRow.state).in_([state.value for state in lifecycle.LIVE]),
        col(JobRow.payload)["revision_id"].as_integer() == revision.id,
    )
    return list(session.exec(query.order_by(col(JobRow.id)).with_for_update()))


def _place(session: Session, text: str) -> tuple[EngineRow, str]:
    """Engine and full sha of `ENGINE@SHA`; a name that may move is refused."""
    name, _, wanted = text.partition("@")
    engine = catalog.engine_named(session, name)
    wanted = wanted.strip().lower()
    if _SHA.fullmatch(wanted):
        return engine, wanted
    if not _PREFIX.fullmatch(wanted):
        raise UsageError(
            f"{text[:120]!r} names no exact commit",
            advice=f"write ENGINE@SHA with {SHORTEST_PREFIX} or more letters of the sha; "
            "a branch or a tag may move. What waits: forkscout approvals",
        )
    return engine, catalog.revision_named(session, engine, wanted).commit
