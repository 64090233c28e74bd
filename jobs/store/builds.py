"""Builds as people ask for them: the list, one with its provenance, its options; reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from jobs.build_tables import BuildFlagsRow
from jobs.dialect.options import Option, from_stored
from jobs.errors import UsageError
from jobs.lifecycle import LIVE
from jobs.model import Kind, State
from jobs.store.work import LARGEST_ID
from jobs.tables import BuildRow, EngineRow, JobRow, RevisionRow

LIVE_STATES = [state.value for state in LIVE]


@dataclass(frozen=True)
class Phase:
    """One part of a build and how long it took."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Cached:
    """How often the compiler's cache had the object."""

    hits: int
    misses: int

    def __str__(self) -> str:
        total = self.hits + self.misses
        return f"{self.hits} of {total} from the cache" if total else "nothing compiled"


@dataclass(frozen=True)
class KnownBuild:
    """A finished build and everything that made it."""

    id: int
    job_id: int
    engine: str
    label: str
    commit: str
    target: str
    identity: str
    artifact: str
    lost: bool
    recipe: str
    source: str
    source_tree: str
    size_bytes: int
    duration_seconds: float
    sandbox: str
    created_at: datetime
    phases: tuple[Phase, ...] = ()
    cached: Cached | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[tuple[str, ...], ...] = ()
    options: int | None = None
    same_as: int | None = None


@dataclass(frozen=True)
class BuildLine:
    """One line of the list: a job that makes a build, and the build where there is one."""

    job_id: int
    build_id: int | None
    engine: str
    label: str
    target: str
    state: str
    at: datetime
    seconds: float | None = None
    size_bytes: int | None = None
    cached: Cached | None = None
    failure_class: str | None = None
    message: str = ""


def lines(
    session: Session,
    *,
    engine_id: int | None = None,
    target: str = "",
    states: Sequence[State] = (),
    limit: int = 50,
) -> list[BuildLine]:
    """Jobs that build, newest first; those of one engine, for one target, in these states."""
    query = select(JobRow).where(JobRow.kind == Kind.BUILD.value)
    if states:
        query = query.where(col(JobRow.state).in_([state.value for state in states]))
    if target:
        query = query.where(col(JobRow.payload)["target"].as_string() == target)
    if engine_id is not None:
        mine = select(RevisionRow.id).where(RevisionRow.engine_id == engine_id)
        query = query.where(col(JobRow.payload)["revision_id"].as_integer().in_(mine))
    rows = session.exec(query.order_by(col(JobRow.id).desc()).limit(limit)).all()
    made = _by_job(session, rows)
    return [_line(session, row, made.get(row.id or 0)) for row in rows]


def build(session: Session, number: int) -> KnownBuild:
    """The finished build of that number; raises `UsageError` where there is none."""
    found = find(session, number)
    if found is None:
        raise UsageError(f"there is no build {number}", advice="see `forkscout builds`")
    return found


def find(session: Session, number: int) -> KnownBuild | None:
    """The same, or None."""
    row = session.get(BuildRow, number) if 0 < number <= LARGEST_ID else None
    return _known(session, row) if row is not None else None


def of_job(session: Session, job: JobRow) -> KnownBuild | None:
    """The finished build that this job answers with, made by it or found made."""
    identity = job.payload.get("build_identity") if job.kind == Kind.BUILD else None
    return with_identity(session, str(identity)) if identity else None


def with_identity(session: Session, identity: str) -> KnownBuild | None:
    """The finished build of this identity, if its artifact is not lost."""
    row = session.exec(select(BuildRow).where(BuildRow.identity == identity)).first()
    return _known(session, row) if row is not None and not row.lost else None


def why_there(session: Session, identity: str, engine: str) -> str:
    """Why this build needs no job: it is there, perhaps for the same commit in another fork."""
    known = with_identity(session, identity)
    if known is None:
        return "built already"
    if known.engine != engine:
        return f"built already: {known.engine} has the same commit, build {known.id}"
    return f"built already: build {known.id}"


def id_of_job(session: Session, job_id: int) -> int | None:
    """The number of the finished build that this job made."""
    return session.exec(select(BuildRow.id).where(BuildRow.job_id == job_id)).first()


def ids(session: Session) -> list[int]:
    """Numbers of all finished builds."""
    return [
        number
        for number in session.exec(select(BuildRow.id).order_by(col(BuildRow.id)))
        if number is not None
    ]


def options_of(session: Session, build_id: int) -> tuple[Option, ...] | None:
    """What the build understands; None where it was made before that was kept."""
    row = session.get(BuildFlagsRow, build_id)
    return from_stored(row.options) if row is not None else None


def newest_of(session: Session, engine_id: int, *, commit: str | None = None) -> KnownBuild | None:
    """The newest finished build of an engine, or of one of its commits, whose options are known."""
    query = (
        select(BuildRow)
        .join(RevisionRow, col(RevisionRow.id) == BuildRow.revision_id)
        .join(BuildFlagsRow, col(BuildFlagsRow.build_id) == BuildRow.id)
        .where(RevisionRow.engine_id == engine_id)
    )
    if commit is not None:
        query = query.where(RevisionRow.commit == commit)
    order = (col(RevisionRow.order_key).desc(), col(BuildRow.id).desc())
    row = session.exec(query.order_by(*order).limit(1)).first()
    return _known(session, row) if row is not None else None


def _known(session: Session, row: BuildRow) -> KnownBuild:
    revision = session.get_one(RevisionRow, row.revision_id)
    engine = session.get_one(EngineRow, revision.engine_id)
    told = row.provenance
    options = options_of(session, row.id or 0)
    return KnownBuild(
        engine=engine.name,
        label=revision.label,
        commit=revision.commit,
        source=str(told.get("source", "")),
        phases=phases_in(told),
        cached=cached_in(told),
        tools=told.get("tools") or {},
        steps=tuple(tuple(step) for step in told.get("steps") or ()),
        options=None if options is None else len(options),
        same_as=told.get("same_as"),
        **row.model_dump(exclude={"provenance", "revision_id"}),
    )


def phases_in(told: Mapping[str, Any]) -> tuple[Phase, ...]:
    """The phases that a provenance or a progress tells of."""
    found = told.get("phases")
    return tuple(Phase(**each) for each in found) if isinstance(found, list) else ()


def cached_in(told: Mapping[str, Any]) -> Cached | None:
    """What the compiler's cache did, where it was asked."""
    found = told.get("cache")
    if not isinstance(found, dict) or not {"hits", "misses"} <= found.keys():
        return None
    return Cached(int(found["hits"]), int(found["misses"]))


def _by_job(session: Session, rows: Sequence[JobRow]) -> dict[int, BuildRow]:
    numbers = [row.id for row in rows]
    found = session.exec(select(BuildRow).where(col(BuildRow.job_id).in_(numbers)))
    return {row.job_id: row for row in found}


def _line(session: Session, job: JobRow, made: BuildRow | None) -> BuildLine:
    number = job.payload.get("revision_id")
    revision = session.get(RevisionRow, number) if number is not None else None
    engine = session.get(EngineRow, revision.engine_id) if revision else None
    return BuildLine(
        job_id=job.id or 0,
        build_id=made.id if made else None,
        engine=engine.name if engine else "",
        label=revision.label if revision else "",
        target=str(job.payload.get("target", "")),
        state=job.state,
        at=job.finished_at or job.started_at or job.created_at,
        seconds=made.duration_seconds if made else None,
        size_bytes=made.size_bytes if made else None,
        cached=cached_in(made.provenance) if made else None,
        failure_class=job.failure_class,
        message=job.message,
    )
