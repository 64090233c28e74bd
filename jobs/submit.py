"""A person's wish becomes jobs: checks every name first, then queues all of it or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast

from sqlalchemy import Engine
from sqlmodel import Session

from jobs import clock, dispatch, hub, planner, queue
from jobs.config import Settings
from jobs.db import database_now, reading, writing
from jobs.engines.registry import FAMILIES
from jobs.errors import JobFailure, Later, Transient, UsageError
from jobs.hub_names import read_place
from jobs.hub_weights import hub_weight
from jobs.model import Lane, Trust
from jobs.planner import JobRequest
from jobs.planning.chains import Against, BenchWish
from jobs.planning.pairs import speculation_of
from jobs.resolving import Desk, resolve, stored
from jobs.scenarios import Scenario, all_rungs, rungs
from jobs.store import catalog, fleet, work, worlds
from jobs.store.targets import target_for
from jobs.tables import EngineRow, JobRow, ResultRow, RevisionRow, StackRow

ON_DEMAND = "asked for by hand"
_AGAIN = "try again later; if it stays so, look at the network and at FORKSCOUT_HF_ENDPOINT"


@dataclass(frozen=True)
class Submitted:
    """The jobs a wish led to, in the order they run; `done` counts what needed no job.

    `joined` are the numbers of those that were on their way before, `identity` is that of the
    build that was asked for, where one was. `left_out` are sentences on rungs without room.
    """

    jobs: tuple[JobRow, ...]
    done: int
    joined: frozenset[int] = frozenset()
    identity: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def last(self) -> JobRow | None:
        """The job that answers the wish."""
        return self.jobs[-1] if self.jobs else None


def submit_bench(
    desk: Desk,
    *,
    engine_name: str,
    ref: str | None,
    rig: str,
    target: str | None,
    scenario: Scenario,
    context_tokens: int | None,
    depths: Sequence[int] = (),
    runs: int | None = None,
    boots: int | None = None,
    drafter: str | None = None,
    projector: str | None = None,
    against: str | None = None,
    stack_name: str = "",
) -> Submitted:
    """Queue fetch, build and bench of one revision; a `UsageError` leaves nothing written.

    `stack_name` is one of the watch list, with its engine, files, intents and flags; without it the
    first of the engine says what is left open.
    A ladder is a bench for each depth: those of `depths`, else each that the context has room for.
    `against` names a revision, or a result (`result:17`), that is measured in turns with it.
    """
    if depths and not scenario.depths:
        raise UsageError(
            f"scenario {scenario.name} is no ladder and has no depths",
            advice="leave --depth out, or name --scenario ladder",
        )
    with reading(desk.database) as session:
        engine, stack = _subject(session, engine_name, stack_name)
        _check_trust(engine)
        catalog.rig_named(session, rig)
        is_whole = bool(stack_name) or not target
        wanted = target or (stack.target if stack else None) or _only_model(session)
        named = _files(stack if is_whole else None, wanted, drafter, projector)
        if scenario.picture and "projector" not in named:
            raise UsageError(
                f"scenario {scenario.name} shows a picture and there is no projector",
                advice="name the model's mmproj file with --projector",
            )
        rows = {role: catalog.model_named(session, name) for role, name in named.items()}
        shape = worlds.known_file(rows["drafter"]).shape if "drafter" in rows else None
    revision = resolve(desk, engine, ref)
    intent = dict(stack.intent) if stack and is_whole else {}
    if projector:
        intent["vision"] = "on"
    if shape is not None:
        intent.setdefault("speculation", speculation_of(shape))
    default_context = int(intent.pop("context", 2048))
    context = context_tokens or default_context
    steps = rungs(scenario, context_tokens=context, depths=depths)
    wish = BenchWish(
        rig=rig,
        scenario=scenario,
        stack=stack.name if stack else f"{engine.name}-{rig}",
        context_tokens=context,
        runs=runs,
        boots=boots,
        intent=intent,
        flags=stack.flags if stack else (),
        env=stack.env if stack else None,
    )
    other = _baseline(desk, engine, against) if against else None
    with writing(desk.database) as session:
        row = stored(session, engine, revision)
        if other is not None:
            wish = replace(wish, against=_against(session, *other, rig=rig))
            if other[0].id == engine.id and other[1].commit == row.commit:
                raise UsageError(
                    f"{engine.name} {row.label} would be measured against itself",
                    advice="name another revision with --against",
                )
        files = {role: catalog.model_named(session, name) for role, name in named.items()}
        requests = {
            request.identity: request
            for step in steps
            for request in dispatch.bench_requests(
                engine,
                row,
                files,
                replace(wish, scenario=step),
                lane=Lane.ON_DEMAND,
                reason=ON_DEMAND,
            )
        }
        done = _queued(session, requests.values())
    left = [step for step in all_rungs(scenario) if not depths and step not in steps]
    return replace(done, left_out=tuple(_left_out(step, context) for step in left))


def submit_build(desk: Desk, *, engine_name: str, ref: str | None, target: str) -> Submitted:
    """Queue the build of one revision for a build target: one of the engine's, or any rig."""
    with reading(desk.database) as session:
        engine = catalog.engine_named(session, engine_name)
        _check_trust(engine)
        if all(each.get("rig") != target for each in engine.targets):
            catalog.rig_named(session, target)
    revision = resolve(desk, engine, ref)
    with writing(desk.database) as session:
        row = stored(session, engine, revision)
        request = planner.build_request(
            dispatch.revision_value(engine, row),
            cast(int, row.id),
            target_for(engine, target),
            lane=Lane.ON_DEMAND,
            reason=ON_DEMAND,
        )
        found = _queued(session, [request])
    return replace(found, identity=str(request.payload["build_identity"]))


def submit_fetch(desk: Desk, place: str, *, rig: str = "") -> Submitted:
    """Queue one file of the hub, or the set it belongs to, at the commit it has there now.

    The same bytes known under another name are that model file. With a `rig` it is brought to
    where the benches of that rig look.
    """
    wanted = read_place(place)
    settings = desk.settings
    if rig:
        with reading(desk.database) as session:
            catalog.rig_named(session, rig)
    try:
        found = hub.snapshot(
            hub.Hub(settings.hf_endpoint, settings.hf_token), wanted.repo, wanted.revision
        )
    except JobFailure as fault:
        raise UsageError(fault.detail, advice=fault.advice) from fault
    except Later as fault:
        advice = (
            f"try again in {fault.wait_seconds:.0f} s; with FORKSCOUT_HF_TOKEN the quota is larger"
        )
        raise Later(fault.detail, wait_seconds=fault.wait_seconds, advice=advice) from fault
    except Transient as fault:
        raise Transient(fault.detail, advice=_AGAIN) from fault
    weight = hub_weight(found, wanted)
    with writing(desk.database) as session:
        model = catalog.model_with(session, weight.sha256) or catalog.add_hub_file(
            session, weight, now=clock.now()
        )
        model.source = model.source or weight.source
        session.add(model)
        request = planner.fetch_request(
            planner.Weights(cast(int, model.id), model.name, model.sha256),
            lane=Lane.ON_DEMAND,
            reason=ON_DEMAND,
            rig=rig,
        )
        return _queued(session, [request])


def submit_publish(desk: Desk) -> Submitted:
    """Queue the static export."""
    with writing(desk.database) as session:
        reason = f"{ON_DEMAND} at {clock.now():%H:%M:%S.%f}"
        request = planner.publish_request(lane=Lane.ON_DEMAND, reason=reason)
        return _queued(session, [request])


def ring_for(settings: Settings, database: Engine, jobs: Iterable[JobRow]) -> list[str]:
    """Ring the jobs' queues where a living worker serves them; the queues that nobody serves."""
    return ring_queues(settings, database, [job.queue for job in jobs])


def ring_queues(settings: Settings, database: Engine, queues: Iterable[str]) -> list[str]:
    """The same for queues."""
    wanted = set(queues)
    with reading(database) as session:
        silent = database_now(session) - timedelta(seconds=settings.lease_seconds)
        served = {worker.queue for worker in fleet.workers(session) if worker.beat_at > silent}
    if wanted & served:
        celery = queue.make_app(settings)
        for name in sorted(wanted & served):
            queue.ring(celery, name)
    return sorted(wanted - served)


def _queued(session: Session, requests: Iterable[JobRequest]) -> Submitted:
    asked = [replace(request, source=planner.BY_HAND) for request in requests]
    now = database_now(session)
    found = work.enqueue(session, asked, now)
    jobs = tuple(job for job in found.values() if job is not None)
    joined = frozenset(job.id or 0 for job in jobs if job.created_at != now)
    return Submitted(jobs=jobs, done=len(found) - len(jobs), joined=joined)


def _baseline(desk: Desk, engine: EngineRow, text: str) -> tuple[EngineRow, RevisionRow]:
    """The revision of a result, of whatever engine, or one of this engine."""
    named = re.fullmatch(r"result:([1-9][0-9]{0,8})", text, re.ASCII)
    if named is None:
        return engine, resolve(desk, engine, text)
    with reading(desk.database) as session:
        found = session.get(ResultRow, int(named[1]))
        if found is None:
            raise UsageError(
                f"there is no result {named[1]}", advice="`forkscout leaderboard` lists them"
            )
        theirs = session.get_one(EngineRow, found.engine_id)
        _check_trust(theirs)
        return theirs, session.get_one(RevisionRow, found.revision_id)


def _against(session: Session, engine: EngineRow, revision: RevisionRow, *, rig: str) -> Against:
    row = stored(session, engine, revision)
    value = dispatch.revision_value(engine, row)
    return Against(value, cast(int, row.id), target_for(engine, rig))


def _subject(
    session: Session, engine_name: str, stack_name: str
) -> tuple[EngineRow, StackRow | None]:
    """The engine and the stack that are meant; either names the other."""
    if not stack_name:
        engine = catalog.engine_named(session, engine_name)
        return engine, next(iter(catalog.stacks(session, engine_id=engine.id)), None)
    stack = catalog.stack_named(session, stack_name)
    engine = session.get_one(EngineRow, stack.engine_id)
    if engine_name and engine_name != engine.name:
        raise UsageError(
            f"the stack {stack.name} is of {engine.name}, not of {engine_name[:80]}",
            advice="leave --engine out, or name a stack of that engine",
        )
    return engine, stack


def _left_out(rung: Scenario, context_tokens: int) -> str:
    return (
        f"{rung.word} is left out: it fills {rung.filled_tokens} tokens and predicts "
        f"{rung.tokens}, the context has {context_tokens}"
    )


def _files(
    stack: StackRow | None, target: str, drafter: str | None, projector: str | None
) -> dict[str, str]:
    """Names of model files by role; what is said by hand goes before what the stack says."""
    said = {
        "target": target,
        "drafter": drafter or (stack.drafter if stack else None),
        "projector": projector or (stack.mmproj if stack else None),
    }
    return {role: name for role, name in said.items() if name}


def _check_trust(engine: EngineRow) -> None:
    if engine.family not in FAMILIES:
        raise UsageError(
            f"{engine.name} belongs to the family {engine.family}, which cannot be built yet",
            advice=f"families that can: {', '.join(sorted(FAMILIES))}",
        )
    if engine.trust == Trust.NEVER:
        raise UsageError(
            f"{engine.name} is never built: its trust is 'never'",
            advice="change `trust` in the watch list and import it again",
        )


def _only_model(session: Session) -> str:
    models = catalog.model_files(session)
    if len(models) == 1:
        return models[0].name
    names = ", ".join(model.name for model in models) or "none; import a watch list first"
    raise UsageError("which model file?", advice=f"pass --target; known are: {names}")
