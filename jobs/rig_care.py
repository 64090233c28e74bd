"""What a sweep does for rigs: asks for the runs of goldens that are due, rings idle workers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

import structlog
from sqlmodel import Session

from jobs import dispatch, health, planner, queue
from jobs.db import database_now, reading, writing
from jobs.engines.registry import FAMILIES
from jobs.errors import UsageError
from jobs.health import Measured, Outcome
from jobs.model import Blame, Kind, Lane, State
from jobs.own_scenarios import asked_by
from jobs.payloads import BenchPayload, HealthPayload
from jobs.planner import JobRequest, Weights
from jobs.planning.chains import BenchWish, Files, chain
from jobs.rig_tables import GoldenRow, RigHealthRow
from jobs.scenarios import rungs, scenario_named
from jobs.station import Station
from jobs.store import catalog, fleet, rigs, scenarios, work
from jobs.store.targets import target_for
from jobs.tables import EngineRow, JobRow, ModelFileRow, RevisionRow, WorkerRow

HEALTH_SOURCE = "health"

log = structlog.get_logger()


def keep_rigs(station: Station) -> None:
    """Queue the health jobs that are due on served rigs, and ring where it has been silent."""
    silence = timedelta(seconds=station.settings.lease_seconds)
    with reading(station.database) as session:
        now = database_now(session)
        alive = [each for each in fleet.workers(session) if each.beat_at > now - silence]
        asks = any(_why(session, each, now) for each in rigs.goldens(session))
    if asks:
        with writing(station.database) as session:
            work.take_turn(session)
            jobs = ask_due(session, now, served={each.queue for each in alive})
        for job in jobs:
            log.info("health job queued", job_id=job.id, title=job.title, reason=job.reason)
            queue.ring(station.app, job.queue)
    for name in sorted({each.queue for each in alive if _is_silent(each, now)}):
        queue.ring(station.app, name)


def _is_silent(worker: WorkerRow, now: datetime) -> bool:
    heard = worker.heard_at or worker.started_at
    return now - heard > fleet.CANARY_AFTER and not worker.draining and worker.queue != "scout"


def ask_due(session: Session, now: datetime, *, served: set[str]) -> list[JobRow]:
    """The health jobs that were queued now, for rigs that a worker serves."""
    found = []
    for golden in rigs.goldens(session):
        reason = _why(session, golden, now)
        if reason and f"{rigs.BENCH}{golden.rig}" in served:
            job = ask(session, golden, now, reason=reason)
            found += [job] if job is not None and job.created_at == now else []
    return found


def _why(session: Session, golden: GoldenRow, now: datetime) -> str:
    """Why this golden is due; nothing while its job lives."""
    row = session.get(RigHealthRow, golden.rig)
    job = session.get(JobRow, row.job_id) if row and row.job_id else None
    if job is not None and job.state in work.LIVE:
        return ""
    if row is not None and rigs.lost_job(session, row) is not None:
        return "the last run was lost"
    last = next(iter(rigs.runs(session, golden.rig, most=1)), None)
    no_answer = (Outcome.NO_ANSWER.value, Outcome.DISTURBED.value)
    return health.due(
        rigs.health_of(session, golden.rig),
        now,
        answered=last is None or last.outcome not in no_answer,
    )


def ask(session: Session, golden: GoldenRow, now: datetime, *, reason: str) -> JobRow | None:
    """Queue one run of a golden with what it needs; None where it cannot be asked for."""
    row = session.get(RigHealthRow, golden.rig) or rigs.keep(
        session, golden.rig, rigs.health_of(session, golden.rig), now
    )
    lost = rigs.lost_job(session, row)
    if lost is not None:
        rigs.record_run(session, golden, _of_lost(lost), now, job_id=lost.id)
        reason = rigs.health_of(session, golden.rig).run_wanted
        if not reason:
            return None
    try:
        requests = _requests(session, golden, reason)
    except UsageError as fault:
        golden.fault = fault.message
        session.add(golden)
        return None
    golden.fault = ""
    session.add(golden)
    jobs = work.enqueue(session, requests, now)
    job = jobs[requests[-1].identity]
    row.job_id = job.id if job else None
    session.add(row)
    session.flush()
    return job


def _of_lost(job: JobRow) -> Measured:
    """What a job that never came to a result says: only a lost machine speaks against the rig."""
    blame = Blame.INFRASTRUCTURE if job.state == State.DEAD else None
    return Measured(failure=f"job {job.id} is {job.state}: {job.message}", blame=blame)


def _requests(session: Session, golden: GoldenRow, reason: str) -> list[JobRequest]:
    """Fetch, build and the health job; raises `UsageError` where a name means nothing yet."""
    wanted = _wanted(session, golden)
    revision = session.get_one(RevisionRow, wanted.revision_id)
    engine = session.get_one(EngineRow, revision.engine_id)
    model = session.get_one(ModelFileRow, wanted.model_file_id)
    says = f"golden of {golden.rig}: {reason}"
    found = chain(
        dispatch.revision_value(engine, revision),
        wanted.revision_id,
        target_for(engine, golden.rig),
        Files(
            _weights(model),
            drafter=_beside(session, wanted.drafter_file_id),
            projector=_beside(session, wanted.projector_file_id),
        ),
        _wish(wanted),
        lane=Lane.HEALTH,
        reason=says,
    ).requests
    bench, before = found[-1], found[:-1]
    payload = HealthPayload(**{**bench.payload, "golden_id": cast(int, golden.id)})
    run = JobRequest(
        kind=Kind.SMOKE,
        queue=f"{rigs.BENCH}{golden.rig}",
        identity=planner.digest(
            "health", golden.rig, golden.id, rigs.count_runs(session, golden.rig)
        ),
        title=f"golden of {golden.rig}: {engine.name} {revision.label} with {model.name}",
        payload=payload.model_dump(mode="json"),
        needs=tuple(each.identity for each in before),
        cause={"golden_id": golden.id},
        lane=Lane.HEALTH,
        reason=says,
    )
    return [replace(each, source=HEALTH_SOURCE) for each in (*before, run)]


def _wanted(session: Session, golden: GoldenRow) -> BenchPayload:
    if golden.payload:
        return BenchPayload.model_validate(golden.payload)
    stack = catalog.stack_named(session, golden.stack)
    engine = session.get_one(EngineRow, stack.engine_id)
    if engine.family not in FAMILIES:
        raise UsageError(
            f"{engine.name} cannot be built yet, so it is no golden",
            advice="name a stack of another engine as [[golden]]",
        )
    context_tokens = int(stack.intent.get("context", 2048))
    named = scenario_named(stack.scenarios[0], scenarios.of_stack(stack))
    scenario = rungs(named, context_tokens=context_tokens)[0] if named.depths else named
    names = {"target": stack.target, "drafter": stack.drafter, "projector": stack.mmproj}
    found = dispatch.bench_requests(
        engine,
        catalog.revision_named(session, engine, golden.revision),
        {role: catalog.model_named(session, name) for role, name in names.items() if name},
        BenchWish(
            rig=golden.rig,
            scenario=scenario,
            stack=stack.name,
            context_tokens=context_tokens,
            runs=rigs.GOLDEN_RUNS,
            boots=rigs.GOLDEN_BOOTS,
            intent={key: value for key, value in stack.intent.items() if key != "context"},
            flags=stack.flags,
            env=stack.env,
        ),
        lane=Lane.HEALTH,
        reason="",
    )
    golden.payload = dict(found[-1].payload)
    return BenchPayload.model_validate(golden.payload)


def _wish(wanted: BenchPayload) -> BenchWish:
    """The same question again, of today's recipe."""
    return BenchWish(
        rig=wanted.rig,
        scenario=asked_by(wanted.scenario, wanted.own_scenario),
        stack=wanted.stack,
        context_tokens=wanted.context_tokens,
        runs=wanted.runs,
        boots=wanted.boots,
        intent=wanted.intent,
        flags=wanted.flags,
        env=wanted.env,
    )


def _weights(row: ModelFileRow) -> Weights:
    return Weights(cast(int, row.id), row.name, row.sha256)


def _beside(session: Session, number: int | None) -> Weights | None:
    return _weights(session.get_one(ModelFileRow, number)) if number else None
