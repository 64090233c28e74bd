"""What gives way to something newer: jobs of a replaced head, their baselines, a waiting retest.

It ends nothing that runs and nothing that a person asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import cast

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select

from jobs import lifecycle
from jobs.model import Kind, Lane, State
from jobs.planning.drafts import obstacle
from jobs.planning.world import Place, World
from jobs.store import events
from jobs.store.events import NEW_REVISION, Ask, Head
from jobs.store.needs import dependents_of, needs_of
from jobs.store.work import LIVE, WAITING, live_with_identity
from jobs.tables import EngineRow, EventRow, JobRow, RevisionRow

NOT_NEEDED = "what it was to be compared with was superseded"


def give_way(
    session: Session, event: EventRow, ask: Ask, gone: Sequence[Head], world: World
) -> list[JobRow]:
    """End what waits for the heads that an event's revision replaces; the jobs that ended.

    `gone` are heads that came and went before anybody planned them. A head that is back is one
    to be compared with again.
    """
    revision = session.get(RevisionRow, ask["revision_id"]) if ask["revision_id"] else None
    engine = session.get(EngineRow, revision.engine_id) if revision else None
    known = world.engines.get(engine.name) if engine else None
    if event.kind not in NEW_REVISION or revision is None or known is None or obstacle(known):
        return []
    revision.replaced = False
    replaced = ask["replaces"]
    heads = {*gone, *([(revision.engine_id, replaced)] if isinstance(replaced, str) else [])}
    ended: list[JobRow] = []
    for older in events.revisions_of(session, sorted(heads)):
        if older.id == revision.id:
            continue
        message = f"superseded by {revision.label}"
        found = supersede(session, cast(int, older.id), world.now, message=message)
        if found:
            older.replaced = True
        ended += found
    return ended


def supersede(session: Session, revision_id: int, now: datetime, *, message: str) -> list[JobRow]:
    """End the waiting benches and builds of a revision that a newer head has replaced.

    What a person asked for stays, and so do what a worker is taking and a build that a living job
    still needs.
    """
    rows = waiting(session, col(JobRow.revision_id) == revision_id)
    ended: list[JobRow] = []
    for row in rows:
        if not is_needed(session, row):
            end_as_superseded(session, row, now, message=message)
            ended.append(row)
    return ended


def waiting(session: Session, *where: ColumnElement[bool]) -> Sequence[JobRow]:
    """Benches, then builds, that wait and that no person asked for; locked, so none is leased."""
    query = select(JobRow).where(
        *where,
        col(JobRow.state).in_(WAITING),
        col(JobRow.kind).in_([Kind.BENCH.value, Kind.BUILD.value]),
        JobRow.lane != int(Lane.ON_DEMAND),
    )
    # By kind, "bench" comes before the "build" that it needs.
    in_order = query.order_by(col(JobRow.kind), col(JobRow.id)).with_for_update(skip_locked=True)
    return session.exec(in_order.execution_options(populate_existing=True)).all()


def is_needed(session: Session, job: JobRow) -> bool:
    """Whether a living job waits for this one."""
    return any(each.state in LIVE for each in dependents_of(session, cast(int, job.id)))


def end_as_superseded(session: Session, job: JobRow, now: datetime, *, message: str) -> None:
    """End a waiting job, whose row the caller has locked, because another one took its place."""
    lifecycle.check_move(State(job.state), State.SUPERSEDED)
    job.state, job.finished_at, job.blocked_by = State.SUPERSEDED.value, now, None
    job.message = message
    session.add(job)
    session.flush()


def places(ended: Collection[JobRow]) -> frozenset[Place]:
    """Where the benches among these jobs were to run, with what."""
    return frozenset(
        (str(job.payload["rig"]), str(job.payload["stack"]), str(job.payload["scenario"]))
        for job in ended
        if job.kind == Kind.BENCH
    )


def settle_baselines(
    session: Session,
    ended: Collection[JobRow],
    served: Mapping[str, str],
    queued: Mapping[str, JobRow | None],
    now: datetime,
) -> None:
    """Baselines of superseded benches go too, but for those that serve the new ones.

    `served` says by identity which waiting baseline which of the `queued` benches is compared with.
    One that is asked for itself, because its head is back, is no baseline any more.
    """
    asked = {job.id for job in queued.values() if job is not None}
    numbers = {job.id for job in ended}
    told_by = {job.event_id for job in ended if job.event_id is not None}
    if not told_by:
        return
    for row in waiting(session, col(JobRow.event_id).in_(told_by)):
        if row.cause.get("baseline_of") not in numbers:
            continue
        if row.id in asked:
            row.cause = {name: row.cause[name] for name in row.cause if name != "baseline_of"}
            session.add(row)
            continue
        heir = queued.get(served.get(row.identity, "")) if row.kind == Kind.BENCH else None
        if row.kind == Kind.BUILD:
            heir = _heir_of_build(session, row)
        if heir is not None:
            row.cause = {"event_id": heir.event_id, "baseline_of": heir.id}
            row.event_id = heir.event_id
            session.add(row)
        elif not is_needed(session, row):
            end_as_superseded(session, row, now, message=NOT_NEEDED)
    session.flush()


def _heir_of_build(session: Session, build: JobRow) -> JobRow | None:
    """The new bench that is compared with what this build is for."""
    for bench in dependents_of(session, cast(int, build.id)):
        number = bench.cause.get("baseline_of")
        if bench.state in WAITING and isinstance(number, int):
            return session.get(JobRow, number)
    return None


def hand_on(session: Session, job: JobRow, *, now: datetime, asked_for: str = "") -> None:
    """End a waiting retest and what was queued for it alone; its place goes to the one asked for.

    One that a worker took meanwhile goes on.
    """
    heir = live_with_identity(session, asked_for)
    for each in (heir, *needs_of(session, cast(int, heir.id))) if heir is not None else ():
        if each.state in WAITING:
            each.lane = min(each.lane, job.lane)
            each.turn_at = min(each.turn_at, job.turn_at)
            each.ages_at = lifecycle.ages_at(each.lane, each.due_at)
            session.add(each)
    if not _outlived(session, job, now):
        return
    for need in needs_of(session, cast(int, job.id)):
        own = need.cause.get("negative_id") == job.cause.get("negative_id")
        asked_by_others = need.lane == Lane.ON_DEMAND and not own
        if need.state in WAITING and not asked_by_others:
            _outlived(session, need, now)


def _outlived(session: Session, job: JobRow, now: datetime) -> bool:
    query = select(JobRow).where(JobRow.id == job.id, col(JobRow.state).in_(WAITING))
    locked = query.with_for_update(skip_locked=True).execution_options(populate_existing=True)
    found = session.exec(locked).first()
    if found is None or is_needed(session, found):
        return False
    message = "more has moved: the retest asks with that"
    end_as_superseded(session, found, now, message=message)
    return True
