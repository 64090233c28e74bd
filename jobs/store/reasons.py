"""Why a job exists, why it waits, what it waits for and what waits for it; reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, cast

from sqlalchemy import text
from sqlmodel import Session, col, select

from jobs import lifecycle, planner
from jobs.line_tables import AttemptRow
from jobs.model import Lane, State
from jobs.store import fleet, line, pauses, rigs, taking, usage, work
from jobs.store.expectations import SILENT, Expectations
from jobs.store.needs import dependents_of, held_by, needs_of, open_needs
from jobs.store.shown import ShownJob
from jobs.store.shown_jobs import expected, shown_jobs
from jobs.tables import HELD, EngineRow, EventRow, JobNeedRow, JobRow, RevisionRow, WorkerRow

DEEPEST = 5
"""How far needs of needs are told."""

MOST_DEPENDENTS = 50
NAMES_A_JOB = frozenset({"baseline_of", "confirms", "in_turns_with", "retest_of"})
"""Keys of a cause whose number is a job, beside those that end in `job_id`."""


@dataclass(frozen=True)
class Origin:
    """One thing that made a job: its kind, its number where it has one, and what it says."""

    kind: str
    says: str
    id: int | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class Wait:
    """One reason why a job does not run: a word for programs and a sentence for people."""

    code: str
    says: str


@dataclass(frozen=True)
class Needed:
    """A job that another one waits for, and what it waits for itself."""

    id: int
    title: str
    state: str
    failure_class: str | None
    must_succeed: bool
    needs: tuple[Needed, ...] = ()


@dataclass(frozen=True)
class Dependent:
    """A job that waits for another one."""

    id: int
    title: str
    state: str


@dataclass(frozen=True)
class Attempt:
    """One lease that is over."""

    number: int
    worker: str
    started_at: datetime
    ended_at: datetime
    outcome: str
    failure_class: str | None
    message: str


@dataclass(frozen=True)
class Why:
    """All that `--why` tells of a job."""

    job: ShownJob
    priority: int
    origins: tuple[Origin, ...]
    waits: tuple[Wait, ...]
    needs: tuple[Needed, ...]
    dependents: tuple[Dependent, ...]
    attempts: tuple[Attempt, ...]


def why(session: Session, job_id: int, now: datetime, *, share: float) -> Why:
    """Everything that explains a job; raises `UsageError` where there is none."""
    return _why(session, work.job(session, job_id), now, share=share)


def find(session: Session, job_id: int, now: datetime, *, share: float) -> Why | None:
    """The same, or None where there is no such job."""
    row = session.get(JobRow, job_id)
    return _why(session, row, now, share=share) if row else None


def _why(session: Session, row: JobRow, now: datetime, *, share: float) -> Why:
    job_id = cast(int, row.id)
    shown = shown_jobs(session, [row])[0]
    place, busy = None, []
    if row.state in lifecycle.LIVE:
        seen = Expectations(session, now)
        found = seen.alone(row)
        shown, place = expected(shown, found, now), found.position
        busy = [_on_the_machine(each) for each in seen.on_the_machine(row.queue) if place]
    waiting = [each for each in dependents_of(session, job_id) if each.state in lifecycle.LIVE]
    dependents = waiting[:MOST_DEPENDENTS]
    return Why(
        job=shown,
        priority=planner.priority_of(row.created_at, row.turn_at),
        origins=tuple(_origins(session, row)),
        waits=(*_waits(session, row, place, now, share=share), *busy),
        needs=_tree(session, job_id, DEEPEST),
        dependents=tuple(Dependent(cast(int, d.id), d.title, d.state) for d in dependents),
        attempts=tuple(_attempts(session, job_id)),
    )


def _origins(session: Session, row: JobRow) -> Sequence[Origin]:
    cause: Mapping[str, Any] = row.cause
    found: list[Origin] = []
    event = _with_id(session, EventRow, cause.get("event_id"))
    if event is not None:
        found.append(Origin("event", event.title, event.id, event.seen_at))
    for name in ("rule", "negative_id", "budget"):
        if cause.get(name) is not None:
            kind = name.removesuffix("_id")
            number = cause[name] if isinstance(cause[name], int) else None
            found.append(Origin(kind, f"{kind} {cause[name]}", number))
    for name in sorted(cause):
        named = name in NAMES_A_JOB or name.endswith("job_id")
        other = _with_id(session, JobRow, cause[name]) if named else None
        if other is not None:
            words = name.removesuffix("job_id").strip("_").replace("_", " ")
            says = f"{words}: {other.title}" if words else other.title
            found.append(Origin("job", says, other.id))
    if against := row.payload.get("against"):
        found.append(Origin("against", _in_turns(session, against)))
    if isinstance(joined := cause.get("joined_at"), str):
        says = "asked for by a person too, while it waited"
        found.append(Origin("person", says, None, datetime.fromisoformat(joined)))
    if row.source == planner.BY_HAND or row.source.startswith("person:"):
        who = row.source.removeprefix("person:") if ":" in row.source else "a person"
        found.append(Origin("person", f"asked for by {who}", None, row.created_at))
    elif row.source:
        found.append(Origin("source", row.source.replace(":", " ")))
    if not found or row.reason not in {each.says for each in found}:
        found.append(Origin("reason", row.reason or "no reason was recorded"))
    return found


def _in_turns(session: Session, against: Mapping[str, Any]) -> str:
    revision = session.get(RevisionRow, against["revision_id"])
    engine = session.get(EngineRow, revision.engine_id) if revision else None
    name = f"{engine.name} {revision.label}" if engine and revision else "a build that is gone"
    return f"measured in turns, A, B, A, B, with {name}; it waits for both builds"


Row = TypeVar("Row", EventRow, JobRow)


def _with_id(session: Session, table: type[Row], number: Any) -> Row | None:
    fits = isinstance(number, int) and 0 < number <= work.LARGEST_ID
    return session.get(table, number) if fits else None


def _waits(
    session: Session, row: JobRow, place: int | None, now: datetime, *, share: float
) -> Sequence[Wait]:
    state = State(row.state)
    if state not in (State.QUEUED, State.BLOCKED):
        return ()
    found: list[Wait] = []
    paused = pauses.pauses(session, now).get(row.queue)
    if paused is not None:
        found.append(Wait("paused", pauses.said(paused)))
    if row.lane > Lane.HEALTH and rigs.is_quarantined(session, row.queue):
        shut = rigs.quarantines(session)[rigs.rig_of(row.queue)]
        found.append(
            Wait(
                "quarantined",
                f"{shut.rig} is quarantined since {_at(shut.since)} and runs health jobs alone: "
                f"{shut.why}",
            )
        )
    found += [
        Wait("held", f"{worker.name} takes no bench: {worker.trouble}; {worker.advice}")
        for worker in fleet.workers(session)
        if worker.queue == row.queue and worker.trouble
    ]
    if not _served(session, row.queue, now):
        found.append(
            Wait("unserved", f"no worker serves {row.queue} now; `forkscout up` starts it")
        )
    if state is State.BLOCKED:
        found.append(_blocked(session, row))
    elif row.put_off or row.due_at > now:
        after = f", after {row.failure_class}" if row.failure_class else ""
        found.append(Wait("due_later", f"it is due at {_at(row.due_at)}{after}"))
    if place is not None:
        found.append(
            Wait(
                "place",
                f"place {place} of {row.queue}, lane {Lane(row.lane).word}, "
                f"turn {_at(row.turn_at)}",
            )
        )
        found += _others(session, row, now, share=share)
    return found


def _others(session: Session, row: JobRow, now: datetime, *, share: float) -> Sequence[Wait]:
    """What is done for others meanwhile."""
    held = select(JobRow).where(text(HELD), JobRow.queue == row.queue).order_by(col(JobRow.id))
    found = [
        Wait("busy", f"job {other.id} runs there: {other.title}") for other in session.exec(held)
    ]
    shared = row.lane not in taking.UNSHARED and share < 1
    if shared and line.goes_before(session, row.queue, row.lane, row.source, now, share=share):
        used = usage.of_sources(session, row.queue, now)
        part = used[row.source] / sum(used.values())
        hours = usage.WINDOW.total_seconds() / 3600
        found.append(
            Wait(
                "over_share",
                f"{row.source or 'its source'} used {part:.0%} of {row.queue} in the last "
                f"{hours:.0f} h; others of its lane go first",
            )
        )
    return found


def _on_the_machine(row: JobRow) -> Wait:
    kind = row.kind.replace("_", " ")
    return Wait("machine", f"it waits until {kind} {row.id} leaves the machine: {row.title}")


def _blocked(session: Session, row: JobRow) -> Wait:
    cause = row.blocked_by or ""
    if cause.startswith("job:"):
        says = held_by(open_needs(session, cast(int, row.id)))
        return Wait("needs", says or f"waits for job {cause.removeprefix('job:')}")
    if cause == lifecycle.NOT_APPROVED:
        return Wait("approval", f"{row.message}; {row.advice}")
    says = f"blocked by {cause.replace('_', ' ') or 'a cause that was not recorded'}"
    return Wait("blocked", f"{says}: {row.message}" if row.message else says)


def _served(session: Session, queue: str, now: datetime) -> bool:
    heard = select(WorkerRow.name).where(
        WorkerRow.queue == queue,
        col(WorkerRow.beat_at) > now - SILENT,
        col(WorkerRow.draining).is_(False),
    )
    return session.exec(heard.limit(1)).first() is not None


def _tree(session: Session, job_id: int, depth: int) -> tuple[Needed, ...]:
    if depth == 0:
        return ()
    settled = set(
        session.exec(
            select(JobNeedRow.needs_id).where(
                JobNeedRow.job_id == job_id, col(JobNeedRow.settled).is_(True)
            )
        )
    )
    return tuple(
        Needed(
            id=cast(int, need.id),
            title=need.title,
            state=need.state,
            failure_class=need.failure_class,
            must_succeed=need.id not in settled,
            needs=_tree(session, cast(int, need.id), depth - 1),
        )
        for need in needs_of(session, job_id)
    )


def _attempts(session: Session, job_id: int) -> Sequence[Attempt]:
    query = select(AttemptRow).where(AttemptRow.job_id == job_id).order_by(col(AttemptRow.fence))
    return [Attempt(**row.model_dump(exclude={"job_id", "fence"})) for row in session.exec(query)]


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
