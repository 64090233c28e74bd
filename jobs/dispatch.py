"""From events and wishes to job rows: looks up what a plan needs and queues it; runs nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

import structlog
from sqlmodel import Session, col, select

from jobs.errors import UsageError
from jobs.model import Kind, Lane, Revision
from jobs.planner import JobRequest, Weights
from jobs.planning.chains import BenchWish, Files, chain
from jobs.planning.drafts import Why, obstacle
from jobs.planning.idle import is_idle
from jobs.planning.plan import OF_FILES, OF_ISSUES, Plan, asked, plan
from jobs.planning.rules import is_about
from jobs.planning.world import Event, World
from jobs.planning_tables import LeftOutRow
from jobs.scenarios import SCENARIOS, Scenario
from jobs.store import builds, catalog, forks, histories, moves, published, rules, work, worlds
from jobs.store.targets import target_for
from jobs.tables import EngineRow, EventRow, JobRow, ModelFileRow, RevisionRow

NEW_REVISION = ("release", "fork_pushed", "branch_created", "upstream_synced")
"""Kinds of event whose revision takes the place of an older one."""

Ask = Mapping[str, Any]
"""For which engine an event is planned: its number, its revision's, and the head it replaces."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Planned:
    """What was decided about one event, and the jobs that are new.

    `there` says by identity why a request needed no job.
    """

    event: EventRow
    plan: Plan
    jobs: tuple[JobRow, ...] = ()
    there: Mapping[str, str] = field(default_factory=dict)


def revision_value(engine: EngineRow, row: RevisionRow) -> Revision:
    """The row as the value that recipes take."""
    return worlds.known_revision(engine, row).value


def bench_requests(
    engine: EngineRow,
    revision: RevisionRow,
    files: Mapping[str, ModelFileRow],
    wish: BenchWish,
    *,
    lane: Lane,
    reason: str,
) -> list[JobRequest]:
    """Fetch, build and bench, in that order; `files` by role, the target among them."""
    weights = {
        role: Weights(cast(int, row.id), row.name, row.sha256) for role, row in files.items()
    }
    found = chain(
        revision_value(engine, revision),
        cast(int, revision.id),
        target_for(engine, wish.rig),
        Files(weights["target"], weights.get("drafter"), weights.get("projector")),
        wish,
        lane=lane,
        reason=reason,
    )
    return list(found.requests)


def plan_events(
    session: Session,
    now: datetime,
    *,
    negatives: Collection[str] = (),
    budget_hours: float = 0.0,
) -> list[JobRow]:
    """Queue what the events not yet planned ask for, and what a budget held back and has room for.

    `negatives` are identities of benches that stand as not working. The jobs that are new.
    """
    work.take_turn(session)
    rows = unplanned(session)
    waiting = _held_back(session, now)
    if not rows and not waiting:
        return []
    world = worlds.world(session, now, negatives=negatives)
    queued: dict[int, JobRow] = {}
    for row in rows:
        for done in plan_event(session, row, world, budget_hours=budget_hours):
            queued |= {cast(int, job.id): job for job in done.jobs}
    for event_id, held in waiting.items():
        for job in _come_back(session, event_id, held, world, budget_hours=budget_hours):
            queued[cast(int, job.id)] = job
    return list(queued.values())


def unplanned(session: Session) -> list[EventRow]:
    """Events that nobody planned, in the order in which they say what has to be done."""
    query = select(EventRow).where(col(EventRow.planned).is_(False)).with_for_update()
    return sorted(session.exec(query), key=_moment)


def plan_event(
    session: Session, row: EventRow, world: World, *, budget_hours: float = 0.0
) -> list[Planned]:
    """Decide about an event for each engine that it is planned for, queue what it asks for."""
    row.planned = True
    session.add(row)
    again = moves.moved_by(session, row, world.now, budget_hours=budget_hours)
    if not is_about(world.rules, row.kind):
        return [Planned(row, Plan(), tuple(again))]
    world = replace(world, retests=frozenset(job.identity for job in again))
    asks = catalog.asked_by(row)
    found = [_plan_ask(session, row, ask, world, budget_hours=budget_hours) for ask in asks]
    return [replace(found[0], jobs=(*again, *found[0].jobs)), *found[1:]]


def _plan_ask(
    session: Session, row: EventRow, ask: Ask, world: World, *, budget_hours: float
) -> Planned:
    event = _event(session, row, ask, world)
    if row.kind in NEW_REVISION and event.revision is not None:
        engine = world.engines.get(event.engine)
        idle = engine is not None and is_idle(event, engine.family)
        if engine is not None and obstacle(engine) is None and not idle:
            _supersede(session, ask["replaces"], event.revision.id, world.now)
    decided = plan(event, _with_history(session, event, world, budget_hours))
    jobs, there = _queue(session, event, decided, world.now)
    wanted = {request.identity for request in decided.requests}
    open_rows = rules.left_out(session, event_ids=[event.id])
    rules.close((r for r in open_rows if r.identity in wanted), world.now, ending="queued")
    _keep_left_out(session, event, decided, world.now)
    return Planned(row, decided, jobs, there)


def _moment(event: EventRow) -> tuple[datetime, int]:
    """When the event last said what has to be done: the head of a branch may have come back."""
    again = event.payload.get("again_at")
    return (datetime.fromisoformat(again) if again else event.seen_at, cast(int, event.id))


def _with_history(session: Session, event: Event, world: World, budget_hours: float) -> World:
    if event.published is not None:
        known = {each.weights.sha256 for each in world.files}
        if event.published.weights.sha256 not in known:
            world = replace(world, files=(*world.files, event.published))
    return histories.with_history(session, world, asked(event, world), budget_hours=budget_hours)


def _event(session: Session, row: EventRow, ask: Ask, world: World) -> Event:
    """The event as planning sees it; what it tells of is made known first."""
    engine = session.get(EngineRow, ask["engine_id"]) if ask["engine_id"] else None
    revision = _revision(session, row, ask, engine)
    file = None
    if row.kind in OF_FILES:
        found, fault = published.file_of(session, row, world.now)
        file = worlds.known_file(found) if found else None
        if fault:
            log.info("model file not usable", event_id=row.id, cause=fault)
    parent = newest = None
    if engine is not None and revision is not None:
        newest = worlds.newest_revision(session, cast(int, engine.id))
        parent = worlds.revision_before(session, revision)
        known = world.engines.get(engine.name)
        if parent is None and ask["revision_id"] and known and obstacle(known) is None:
            published.parent_of(session, row, revision, world.now)
            parent = worlds.revision_before(session, revision)
    facts = row.payload.get("facts")
    return Event(
        id=cast(int, row.id),
        kind=row.kind,
        title=row.title,
        engine=engine.name if engine else "",
        revision=worlds.known_revision(engine, revision) if engine and revision else None,
        parent=worlds.known_revision(engine, parent) if engine and parent else None,
        published=file,
        linked=_note(session, row),
        low_priority=bool(row.payload.get("low_priority")),
        newest=newest is None or revision is None or newest.id == revision.id,
        facts=facts if isinstance(facts, dict) else row.payload,
    )


def _revision(
    session: Session, row: EventRow, ask: Ask, engine: EngineRow | None
) -> RevisionRow | None:
    """What the event is about: its own revision, or the head at which it was noticed."""
    if ask["revision_id"]:
        return session.get(RevisionRow, ask["revision_id"])
    facts = row.payload.get("facts")
    after = facts.get("after") if isinstance(facts, dict) else None
    if engine is None or not isinstance(after, str):
        return None
    query = select(RevisionRow).where(
        RevisionRow.engine_id == engine.id, RevisionRow.commit == after
    )
    return session.exec(query).first()


def _note(session: Session, row: EventRow) -> str | None:
    """What a person noted beside an issue that they linked; None for one that nobody did."""
    number = row.payload.get("number")
    if row.kind not in OF_ISSUES or not isinstance(number, int):
        return None
    found = forks.linked_issue(session, str(row.payload.get("full_name")), number)
    return found.note if found else None


def _queue(
    session: Session, event: Event, decided: Plan, now: datetime
) -> tuple[tuple[JobRow, ...], dict[str, str]]:
    """The new jobs, and what needed none."""
    found = work.enqueue(session, decided.requests, now)
    for baseline in decided.baselines:
        job = found.get(baseline.bench)
        cause: dict[str, Any] = {"event_id": event.id, "baseline_of": job.id if job else None}
        requests = [replace(each, cause=cause) for each in baseline.requests]
        found |= work.enqueue(session, requests, now)
    new = tuple(job for job in found.values() if job is not None and job.created_at == now)
    there = {
        each.identity: builds.why_there(session, each.payload["build_identity"], event.engine)
        for each in decided.everything
        if each.kind is Kind.BUILD and found.get(each.identity, each) is None
    }
    return new, there


def _keep_left_out(session: Session, event: Event, decided: Plan, now: datetime) -> None:
    if not decided.left_out:
        return
    rules.leave_out(session, event.id, decided.left_out, now)
    cut = [each for each in decided.left_out if each.why is Why.BUDGET]
    if cut:
        log.info("sweep cut by its budget", event_id=event.id, cut=len(cut), cause=cut[0].detail)


def _held_back(session: Session, now: datetime) -> dict[int, list[LeftOutRow]]:
    """What a budget cut on an earlier day, by event."""
    held: dict[int, list[LeftOutRow]] = {}
    for row in rules.left_out(session, why=Why.BUDGET):
        if row.left_at < histories.day_of(now):
            held.setdefault(row.event_id, []).append(row)
    return held


def _come_back(
    session: Session,
    event_id: int,
    held: Iterable[LeftOutRow],
    world: World,
    *,
    budget_hours: float,
) -> tuple[JobRow, ...]:
    """Queue what a budget has room for now as backfill, where nothing newer took its place."""
    rows = list(held)
    row = session.get_one(EventRow, event_id)
    asks = (_event(session, row, ask, world) for ask in catalog.asked_by(row))
    events = [event for event in asks if event.newest]
    if not events:
        rules.close(rows, world.now, ending="something newer took its place")
        return ()
    only = {each.identity for each in rows}
    jobs: list[JobRow] = []
    wanted: set[str] = set()
    still: set[str] = set()
    for event in events:
        found = _with_history(session, event, world, budget_hours)
        decided = plan(event, found, only=only, lane=Lane.BACKFILL)
        jobs += _queue(session, event, decided, world.now)[0]
        wanted |= {request.identity for request in decided.requests}
        still |= {each.identity for each in decided.left_out}
        _keep_left_out(session, event, decided, world.now)
    gone = [each for each in rows if each.identity not in still - wanted]
    rules.close((r for r in gone if r.identity in wanted), world.now, ending="queued")
    rules.close((r for r in gone if r.identity not in wanted), world.now, ending="not asked now")
    return tuple(jobs)


def _supersede(session: Session, replaced: str | None, revision_id: int, now: datetime) -> None:
    """The head that this one replaced need not be measured any more."""
    revision = session.get_one(RevisionRow, revision_id)
    query = select(RevisionRow).where(
        RevisionRow.engine_id == revision.engine_id, RevisionRow.commit == replaced
    )
    for older in session.exec(query):
        if older.id != revision_id:
            message = f"superseded by {revision.label}"
            work.supersede(session, cast(int, older.id), now, message=message)


def scenario_named(name: str) -> Scenario:
    """The shipped scenario of this name; raises `UsageError` with those there are."""
    if name not in SCENARIOS:
        raise UsageError(
            f"unknown scenario {name!r}", advice=f"known are: {', '.join(sorted(SCENARIOS))}"
        )
    return SCENARIOS[name]
