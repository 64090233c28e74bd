"""From events and wishes to job rows: looks up what a plan needs and queues it; runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from sqlmodel import Session, col, select

from jobs import planner
from jobs.engines.registry import FAMILIES
from jobs.errors import UsageError
from jobs.model import BuildTarget, Lane, Revision, Trust
from jobs.payloads import BenchPayload
from jobs.planner import JobRequest, Weights
from jobs.scenarios import SCENARIOS, Scenario
from jobs.store import catalog, work
from jobs.tables import EngineRow, EventRow, JobRow, ModelFileRow, RevisionRow, StackRow

NEW_REVISION = ("release", "fork_pushed", "branch_created", "upstream_synced")
"""Kinds of event that ask for a build and a bench."""


@dataclass(frozen=True)
class BenchWish:
    """A bench somebody wants of one revision; None takes the scenario's own number."""

    rig: str
    scenario: Scenario
    stack: str
    context_tokens: int
    runs: int | None = None
    boots: int | None = None
    intent: Mapping[str, Any] | None = None
    flags: Sequence[str] = ()
    env: Mapping[str, str] | None = None


def revision_value(engine: EngineRow, row: RevisionRow) -> Revision:
    """The row as the value that recipes take."""
    return Revision(
        engine=engine.name,
        family=engine.family,
        commit=row.commit,
        label=row.label,
        source=engine.repo or engine.package or "",
    )


def target_for(engine: EngineRow, rig: str) -> BuildTarget:
    """What has to be built for a rig; the watch list's word, else the family's own way."""
    for entry in engine.targets:
        if entry.get("rig") == rig:
            return BuildTarget(
                name=rig,
                via=str(entry["via"]),
                cuda_arch=entry.get("cuda_arch"),
                options=tuple(entry.get("options") or ()),
            )
    return BuildTarget(name=rig, via=FAMILIES[engine.family].VIA)


def bench_requests(
    engine: EngineRow,
    revision: RevisionRow,
    model: ModelFileRow,
    wish: BenchWish,
    *,
    lane: Lane,
    reason: str,
) -> list[JobRequest]:
    """Fetch, build and bench, in that order."""
    weights = Weights(cast(int, model.id), model.name, model.sha256)
    value = revision_value(engine, revision)
    fetch = planner.fetch_request(weights, lane=lane, reason=reason)
    build = planner.build_request(
        value, cast(int, revision.id), target_for(engine, wish.rig), lane=lane, reason=reason
    )
    payload = BenchPayload(
        revision_id=cast(int, revision.id),
        build_identity=build.payload["build_identity"],
        model_file_id=weights.id,
        scenario=wish.scenario.name,
        rig=wish.rig,
        stack=wish.stack,
        context_tokens=wish.context_tokens,
        runs=wish.runs or wish.scenario.runs,
        boots=wish.boots or wish.scenario.boots,
        intent=dict(wish.intent or {}),
        flags=tuple(wish.flags),
        env=dict(wish.env or {}),
    )
    bench = planner.bench_request(
        payload,
        weights=weights,
        scenario=wish.scenario,
        label=f"{engine.name} {revision.label}",
        lane=lane,
        reason=reason,
        needs=(fetch, build),
    )
    return [fetch, build, bench]


def plan_events(session: Session, now: datetime) -> list[JobRow]:
    """Queue what the events not yet planned ask for; the jobs that are new."""
    work.take_turn(session)
    query = select(EventRow).where(col(EventRow.planned).is_(False)).with_for_update()
    queued: dict[int, JobRow] = {}
    for event in sorted(session.exec(query), key=_moment):
        for ask in catalog.asked_by(event):
            for job in _plan_event(session, event, ask, now):
                queued[cast(int, job.id)] = job
        event.planned = True
        session.add(event)
    return list(queued.values())


def _moment(event: EventRow) -> tuple[datetime, int]:
    """When the event last said what has to be done: the head of a branch may have come back."""
    again = event.payload.get("again_at")
    return (datetime.fromisoformat(again) if again else event.seen_at, cast(int, event.id))


def _plan_event(
    session: Session, event: EventRow, ask: Mapping[str, Any], now: datetime
) -> list[JobRow]:
    """What one engine asks for because of the event."""
    engine = session.get(EngineRow, ask["engine_id"]) if ask["engine_id"] else None
    revision = session.get(RevisionRow, ask["revision_id"]) if ask["revision_id"] else None
    if event.kind not in NEW_REVISION or engine is None or revision is None:
        return []
    if engine.retired or engine.trust in (Trust.NEVER, Trust.APPROVE):
        return []
    if engine.family not in FAMILIES:
        return []
    _supersede(session, engine, revision, ask["replaces"], now)
    lane = Lane.RETEST if event.payload.get("low_priority") else Lane.FRESH
    wanted: list[JobRequest] = []
    for stack in session.exec(select(StackRow).where(StackRow.engine_id == engine.id)).all():
        for chain in _chains(session, engine, revision, stack, lane=lane, reason=event.title):
            if not work.was_tried(session, chain[-1].identity):
                wanted += [
                    replace(request, source=f"engine:{engine.name}", cause={"event_id": event.id})
                    for request in chain
                ]
    found = work.enqueue(session, wanted, now).values()
    return [job for job in found if job is not None and job.created_at == now]


def _supersede(
    session: Session, engine: EngineRow, revision: RevisionRow, replaced: str | None, now: datetime
) -> None:
    """The head that this one replaced need not be measured any more."""
    for older in catalog.revisions_of(session, cast(int, engine.id)):
        if older.commit == replaced and older.id != revision.id:
            message = f"superseded by {revision.label}"
            work.supersede(session, cast(int, older.id), now, message=message)


def _chains(
    session: Session,
    engine: EngineRow,
    revision: RevisionRow,
    stack: StackRow,
    *,
    lane: Lane,
    reason: str,
) -> Iterator[list[JobRequest]]:
    """For each rig and scenario of a stack: fetch, build and bench, in that order."""
    model = catalog.model_named(session, stack.target)
    intent = {k: v for k, v in stack.intent.items() if k != "context"}
    for rig in dict.fromkeys(str(entry["rig"]) for entry in engine.targets):
        for name in stack.scenarios:
            wish = BenchWish(
                rig=rig,
                scenario=scenario_named(name),
                stack=stack.name,
                context_tokens=int(stack.intent.get("context", 2048)),
                intent=intent,
                flags=stack.flags,
                env=stack.env,
            )
            yield bench_requests(engine, revision, model, wish, lane=lane, reason=reason)


def scenario_named(name: str) -> Scenario:
    """The shipped scenario of this name; raises `UsageError` with those there are."""
    if name not in SCENARIOS:
        raise UsageError(
            f"unknown scenario {name!r}", advice=f"known are: {', '.join(sorted(SCENARIOS))}"
        )
    return SCENARIOS[name]
