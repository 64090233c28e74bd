"""From events and wishes to job rows: looks up what a plan needs and queues it; runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlmodel import Session

from jobs.dialect import wire
from jobs.model import Kind, Lane, Revision
from jobs.planner import JobRequest, Weights
from jobs.planning.chains import BenchWish, Files, chain
from jobs.planning.drafts import LeftOut, Why
from jobs.planning.idle import is_idle
from jobs.planning.plan import Plan, asked, plan
from jobs.planning.rules import is_about
from jobs.planning.world import Event, World
from jobs.store import (
    builds,
    catalog,
    events,
    histories,
    moves,
    rules,
    seen_events,
    superseding,
    work,
    worlds,
)
from jobs.store.events import TOOK_ITS_PLACE, Ask, Head, Told
from jobs.store.targets import target_for
from jobs.tables import EngineRow, EventRow, JobRow, ModelFileRow, RevisionRow

log = structlog.get_logger()


@dataclass(frozen=True)
class Planned:
    """What was decided about one event, and the jobs that are new.

    `there` says by identity why a request needed no job, `stands_for` counts events of the same
    look that it replaced.
    """

    event: EventRow
    plan: Plan
    jobs: tuple[JobRow, ...] = ()
    there: Mapping[str, str] = field(default_factory=dict)
    stands_for: int = 0


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


def plan_events(session: Session, now: datetime, *, budget_hours: float = 0.0) -> list[JobRow]:
    """Plan all in the caller's one transaction, for a few events; the jobs that are new.

    What comes from sources is planned by `jobs.planning_round`, a little at a time.
    """
    work.take_turn(session)
    found = [*all_events(session, now, budget_hours=budget_hours)]
    world = worlds.world(session, now)
    for number in rules.held_back(session, histories.day_of(now)):
        found += come_back(session, number, world, budget_hours=budget_hours)
    return list({cast(int, job.id): job for each in found for job in each.jobs}.values())


def all_events(session: Session, now: datetime, *, budget_hours: float = 0.0) -> Iterator[Planned]:
    """Plan every event that nobody planned, each in its turn."""
    seen = events.look(session)
    world = worlds.world(session, now) if seen.order else World(now)
    for number in seen.order:
        behind = seen.behind.get(number, ())
        yield from plan_next(session, number, world, behind=behind, budget_hours=budget_hours)


def plan_next(
    session: Session,
    number: int,
    world: World,
    *,
    behind: Sequence[Told] = (),
    budget_hours: float = 0.0,
) -> list[Planned]:
    """Plan an event and those it stands for, unless somebody did."""
    row = events.unplanned(session, number)
    if row is None:
        return []
    return plan_event(session, row, world, behind=behind, budget_hours=budget_hours)


def plan_event(
    session: Session,
    row: EventRow,
    world: World,
    *,
    behind: Sequence[Told] = (),
    budget_hours: float = 0.0,
) -> list[Planned]:
    """Decide about an event for each engine that it is planned for, queue what it asks for.

    One that cannot be planned is left out with the reason and holds up no other.
    """

    def act() -> list[Planned]:
        return _plan_event(session, row, world, behind=behind, budget_hours=budget_hours)

    return _by_itself(session, row, act, world.now)


def _by_itself(
    session: Session, row: EventRow, act: Callable[[], list[Planned]], now: datetime
) -> list[Planned]:
    try:
        with session.begin_nested():
            return act()
    except (InterfaceError, OperationalError):
        raise  # the database's trouble, not the event's
    except Exception as fault:
        log.exception("event cannot be planned", event_id=row.id)
        session.refresh(row)
        row.planned = True
        session.add(row)
        says = wire.plain(" ".join(f"{type(fault).__name__}: {fault}".split()))
        left = LeftOut(f"event:{row.id}", row.title, Why.UNREADABLE, says[: rules.LONGEST_DETAIL])
        rules.leave_out(session, cast(int, row.id), [left], now)
        return [Planned(row, Plan(left_out=(left,)))]


def _plan_event(
    session: Session,
    row: EventRow,
    world: World,
    *,
    behind: Sequence[Told] = (),
    budget_hours: float = 0.0,
) -> list[Planned]:
    row.planned = True
    session.add(row)
    gone = events.pass_over(session, behind, row, world.now) if behind else []
    again = moves.moved_by(session, row, world.now, budget_hours=budget_hours)
    if not is_about(world.rules, row.kind):
        return [Planned(row, Plan(), tuple(again))]
    world = replace(world, retests=frozenset(job.identity for job in again))
    asks = catalog.asked_by(row)
    found = [_plan_ask(session, row, ask, gone, world, hours=budget_hours) for ask in asks]
    first = replace(found[0], jobs=(*again, *found[0].jobs), stands_for=len(behind))
    return [first, *found[1:]]


def _plan_ask(
    session: Session,
    row: EventRow,
    ask: Ask,
    gone: Sequence[Head],
    world: World,
    *,
    hours: float,
) -> Planned:
    # Before anything gives way: what takes the place of a waiting bench has its hours.
    world = replace(world, budgets=histories.budgets(session, world.now, hours=hours))
    event = seen_events.seen(session, row, ask, world)
    before = [head for head in gone if head[0] == ask["engine_id"]]
    engine = world.engines.get(event.engine)
    given: list[JobRow] = []
    if before or engine is None or not is_idle(event, engine):
        given = superseding.give_way(session, row, ask, before, world)
        event = seen_events.seen(session, row, ask, world)
    world = replace(world, given_up=superseding.places(given))
    decided = plan(event, _with_history(session, event, world))
    found = _queue(session, event, decided, world.now)
    superseding.settle_baselines(session, given, decided.served, found, world.now)
    wanted = {request.identity for request in decided.requests}
    open_rows = rules.left_out(session, event_ids=[event.id])
    rules.close((r for r in open_rows if r.identity in wanted), world.now, ending="queued")
    rules.leave_out(session, event.id, decided.left_out, world.now)
    return Planned(row, decided, _new(found, world.now), _there(session, event, decided, found))


def _with_history(session: Session, event: Event, world: World) -> World:
    if event.published is not None:
        known = {each.weights.sha256 for each in world.files}
        if event.published.weights.sha256 not in known:
            world = replace(world, files=(*world.files, event.published))
    return histories.with_history(session, world, asked(event, world))


def _queue(
    session: Session, event: Event, decided: Plan, now: datetime
) -> dict[str, JobRow | None]:
    found = work.enqueue(session, decided.requests, now)
    for baseline in decided.baselines:
        job = found.get(baseline.bench)
        cause: dict[str, Any] = {"event_id": event.id, "baseline_of": job.id if job else None}
        requests = [replace(each, cause=cause) for each in baseline.requests]
        found |= work.enqueue(session, requests, now)
    return found


def _there(
    session: Session, event: Event, decided: Plan, found: Mapping[str, JobRow | None]
) -> dict[str, str]:
    """What needed no job, and why."""
    return {
        each.identity: builds.why_there(session, each.payload["build_identity"], event.engine)
        for each in decided.everything
        if each.kind is Kind.BUILD and found.get(each.identity, each) is None
    }


def _new(found: Mapping[str, JobRow | None], now: datetime) -> tuple[JobRow, ...]:
    return tuple(job for job in found.values() if job is not None and job.created_at == now)


def come_back(
    session: Session, event_id: int, world: World, *, budget_hours: float = 0.0
) -> list[Planned]:
    """Queue what a budget cut and has room for now as backfill, where nothing newer took its place.

    Only what was cut on an earlier day is looked at.
    """
    row = session.get_one(EventRow, event_id)

    def act() -> list[Planned]:
        return [Planned(row, Plan(), _come_back(session, row, world, hours=budget_hours))]

    return _by_itself(session, row, act, world.now)


def _come_back(
    session: Session, row: EventRow, world: World, *, hours: float
) -> tuple[JobRow, ...]:
    event_id = cast(int, row.id)
    left = rules.left_out(session, event_ids=[event_id], why=Why.BUDGET)
    rows = [each for each in left if each.left_at < histories.day_of(world.now)]
    asks = (seen_events.seen(session, row, ask, world) for ask in catalog.asked_by(row))
    newest = [event for event in asks if event.newest]
    if not newest:
        rules.close(rows, world.now, ending=TOOK_ITS_PLACE)
        return ()
    only = {each.identity for each in rows}
    jobs: list[JobRow] = []
    wanted: set[str] = set()
    still: set[str] = set()
    for event in newest:
        world = replace(world, budgets=histories.budgets(session, world.now, hours=hours))
        found = _with_history(session, event, world)
        decided = plan(event, found, only=only, lane=Lane.BACKFILL)
        jobs += _new(_queue(session, event, decided, world.now), world.now)
        wanted |= {request.identity for request in decided.requests}
        still |= {each.identity for each in decided.left_out}
        rules.leave_out(session, event.id, decided.left_out, world.now)
    gone = [each for each in rows if each.identity not in still - wanted]
    rules.close((r for r in gone if r.identity in wanted), world.now, ending="queued")
    rules.close((r for r in gone if r.identity not in wanted), world.now, ending="not asked now")
    return tuple(jobs)
