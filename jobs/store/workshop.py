"""What the workers page tells: rigs with their health, workers with what they do; reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, col, select

from jobs.model import RigState
from jobs.rig_tables import GoldenRow, HealthRunRow, RigHealthRow
from jobs.store import fleet, line, pauses, rigs
from jobs.store.expectations import Expectations
from jobs.store.shown import ShownJob
from jobs.store.shown_jobs import shown_jobs
from jobs.tables import ResultRow, RigRow, WorkerRow

OLDEST_READY = timedelta(minutes=10)
"""A due job that waits this long beside an idle worker was not heard of: somebody must look."""

GONE_AFTER = timedelta(hours=1)
"""A worker that was silent this long and said no farewell died."""

SHOWN_RUNS = 30


@dataclass(frozen=True)
class ShownRun:
    """One run of a golden, with the band it was held against."""

    at: datetime
    outcome: str
    why: str
    decode_tps: float | None
    low: float | None
    high: float | None
    job_id: int | None


@dataclass(frozen=True)
class ShownGolden:
    """What a rig's health is measured with; `low` and `high` are None before anything is known."""

    origin: str
    stack: str
    revision: str
    scenario: str
    low: float | None
    high: float | None
    fault: str
    since: datetime


@dataclass(frozen=True)
class ShownRig:
    """A rig: how far its numbers can be believed, and why."""

    id: int
    name: str
    device: str
    state: str
    why: str
    by_hand: bool
    since: datetime | None
    last_run_at: datetime | None
    last_good_at: datetime | None
    run_wanted: str
    fingerprint: str
    facts: Mapping[str, Any]
    environment: Mapping[str, Any]
    golden: ShownGolden | None
    runs: tuple[ShownRun, ...]
    doubtful_results: int


@dataclass(frozen=True)
class WorkerAtWork:
    """A worker; `condition` is one word: working, idle, paused, draining, held, silent, gone.

    `label` names it without its host, which is private.
    """

    name: str
    label: str
    queue: str
    sandbox: str
    condition: str
    trouble: str
    advice: str
    pause: str
    started_at: datetime
    beat_at: datetime
    heard_at: datetime | None
    beat_age_seconds: int
    job: ShownJob | None


@dataclass(frozen=True)
class Alarm:
    """Something a person must look at: a queue whose workers do not take what is due."""

    queue: str
    says: str
    advice: str


@dataclass(frozen=True)
class Workshop:
    """Rigs, workers, alarms, at one moment."""

    at: datetime
    rigs: tuple[ShownRig, ...]
    workers: tuple[WorkerAtWork, ...]
    alarms: tuple[Alarm, ...]


def workshop(session: Session, now: datetime, *, silent_seconds: float) -> Workshop:
    """All that the page shows."""
    workers = workers_at_work(session, now, silent_seconds=silent_seconds)
    return Workshop(now, shown_rigs(session), workers, alarms(session, workers, now))


def shown_rigs(session: Session) -> tuple[ShownRig, ...]:
    """Every rig by name."""
    rows = session.exec(select(RigRow).order_by(col(RigRow.name))).all()
    known = {row.rig: row for row in session.exec(select(RigHealthRow))}
    doubtful = dict(
        session.exec(
            select(ResultRow.rig_id, func.count())
            .where(ResultRow.doubt != "")
            .group_by(col(ResultRow.rig_id))
        ).all()
    )
    return tuple(
        _rig(session, row, known.get(row.name), doubtful.get(row.id or 0, 0)) for row in rows
    )


def _rig(session: Session, row: RigRow, health: RigHealthRow | None, doubtful: int) -> ShownRig:
    golden = rigs.golden_of(session, row.name)
    return ShownRig(
        id=row.id or 0,
        name=row.name,
        device=row.device,
        state=health.state if health else RigState.UNPROVEN.value,
        why=health.why if health else "",
        by_hand=bool(health and health.by_hand),
        since=health.since if health else None,
        last_run_at=health.last_run_at if health else None,
        last_good_at=health.last_good_at if health else None,
        run_wanted=health.run_wanted if health else "",
        fingerprint=row.fingerprint,
        facts=row.facts,
        environment=health.environment if health else {},
        golden=_golden(session, golden) if golden else None,
        runs=tuple(map(_run, rigs.runs(session, row.name, most=SHOWN_RUNS))),
        doubtful_results=doubtful,
    )


def _golden(session: Session, row: GoldenRow) -> ShownGolden:
    band = rigs.known(session, row).band
    return ShownGolden(
        origin=row.origin,
        stack=row.stack,
        revision=row.revision,
        scenario=str(row.payload.get("scenario", "")),
        low=band.low if band else None,
        high=band.high if band else None,
        fault=row.fault,
        since=row.created_at,
    )


def _run(row: HealthRunRow) -> ShownRun:
    return ShownRun(
        at=row.created_at,
        outcome=row.outcome,
        why=row.why,
        decode_tps=row.decode_tps,
        low=row.low,
        high=row.high,
        job_id=row.job_id,
    )


def workers_at_work(
    session: Session, now: datetime, *, silent_seconds: float
) -> tuple[WorkerAtWork, ...]:
    """Every worker that has greeted and not said farewell."""
    held = {job.leased_by: job for job in shown_jobs(session, line.held_rows(session))}
    paused = pauses.pauses(session, now)
    found = []
    for row in sorted(fleet.workers(session), key=lambda row: (row.queue, row.name)):
        job, pause = held.get(row.name), paused.get(row.queue)
        silence = timedelta(seconds=silent_seconds)
        condition = _condition(row, now, silence=silence, works=bool(job), rests=bool(pause))
        found.append(
            WorkerAtWork(
                name=row.name,
                label=f"{row.queue} {row.name.rpartition('.')[2]}" if "@" in row.name else row.name,
                queue=row.queue,
                sandbox=row.sandbox,
                condition=condition,
                trouble=row.trouble,
                advice=row.advice,
                pause=(pause.reason or "no reason was given") if pause else "",
                started_at=row.started_at,
                beat_at=row.beat_at,
                heard_at=row.heard_at,
                beat_age_seconds=max(0, round((now - row.beat_at).total_seconds())),
                job=job,
            )
        )
    return tuple(found)


def _condition(
    row: WorkerRow, now: datetime, *, silence: timedelta, works: bool, rests: bool
) -> str:
    age = now - row.beat_at
    if age > max(GONE_AFTER, silence):
        return "gone"
    if age > silence:
        return "silent"
    if row.draining:
        return "draining"
    if works:
        return "working"
    if row.trouble:
        return "held"
    return "paused" if rests else "idle"


def alarms(session: Session, workers: Sequence[WorkerAtWork], now: datetime) -> tuple[Alarm, ...]:
    """Queues where a job is due for long beside an idle worker, and idle workers that are deaf.

    What waits because a bench has the machine to itself is no cause for one.
    """
    found = []
    expected = Expectations(session, now)
    for name in sorted({each.queue for each in workers if each.condition == "idle"}):
        idle = [each for each in workers if each.queue == name and each.condition == "idle"]
        oldest = line.oldest_due(session, name, now)
        late = oldest is not None and now - oldest > OLDEST_READY
        if oldest is not None and late and not expected.on_the_machine(name):
            minutes = round((now - oldest).total_seconds() / 60)
            says = f"a job of {name} is due for {minutes} min while {len(idle)} idle could take it"
            found.append(Alarm(name, says, f"start the worker of {name} again"))
        for each in idle:
            heard = each.heard_at or each.started_at
            if name != "scout" and now - heard > 3 * fleet.CANARY_AFTER:
                says = f"{each.name} has heard no doorbell since {heard:%Y-%m-%d %H:%M} UTC"
                found.append(Alarm(name, says, "look at the broker, then start the worker again"))
    return tuple(found)
