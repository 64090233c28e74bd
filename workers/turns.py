"""Two builds of one bench job, booted in turns and stored as two results; it prepares neither."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, cast

from sqlmodel import Session

from jobs import planner
from jobs.db import database_now
from jobs.dialect import wire
from jobs.errors import JobFailure
from jobs.model import Blame, Boot, State
from jobs.payloads import BenchPayload
from jobs.store import births, work
from jobs.store.arms import BASELINE, CANDIDATE, arm_of
from jobs.store.failures import record as record_failure
from jobs.store.leases import Lease
from jobs.tables import JobRow
from workers.bench import run_boot
from workers.errands import Errand
from workers.plan import Place
from workers.preparing import Bench
from workers.quiet import disturbance, marked, recover, wait_for_quiet
from workers.recording import record

ITS_OWN = (Blame.ENGINE, Blame.CONFIGURATION)
"""Faults of a baseline that say nothing of the candidate, nor of the machine both run on."""

LONGEST_MESSAGE = 500


@dataclass
class Side:
    """One of the two builds: everything prepared, and what came of it so far."""

    arm: str
    bench: Bench
    place: Place
    boots: list[Boot] = field(default_factory=list)
    failure: JobFailure | None = None


def run_in_turns(errand: Errand, sides: Sequence[Side], *, most_rounds: int) -> None:
    """A, B, A, B until enough rounds were left alone, or there were too many; all boots are kept.

    A baseline that cannot be measured leaves the candidate its turns. Raises the candidate's own
    JobFailure, any failure of the machine, and Stopped on a cancel.
    """
    wanted = sides[0].bench.wanted
    alone = number = 0
    while alone < wanted.boots and number < most_rounds:
        number += 1
        quiet = [_one(errand, side, number) for side in sides if side.failure is None]
        alone += all(quiet)


def _one(errand: Errand, side: Side, number: int) -> bool:
    """One boot of one side; whether nothing disturbed it."""
    limit = errand.station.settings.quiet_seconds
    wait_for_quiet(errand.control, limit_seconds=limit, card=side.place.card)
    errand.say(f"arm {side.arm}, boot {number}")
    try:
        boot = run_boot(
            replace(side.bench.plan, arm=side.arm),
            side.place,
            number=number,
            control=errand.control,
            keep=partial(keep_boot, errand, arm=side.arm),
        )
    except JobFailure as failure:
        if side.arm == CANDIDATE or failure.blame not in ITS_OWN:
            raise
        side.failure = failure
        return True
    least = side.place.least_mhz
    side.boots.append(marked(boot, least_mhz=least))
    if not disturbance(boot, least_mhz=least):
        return True
    recover(errand.control, side.place.card, limit_seconds=limit)
    return False


def keep_boot(errand: Errand, boot: Boot, *, arm: str = "") -> None:
    """Every boot is on disk as soon as it ends, whatever becomes of the job."""
    told = {**({"arm": arm} if arm else {}), **asdict(boot)}
    with errand.log.with_suffix(".boots.jsonl").open("a") as file:
        file.write(json.dumps(told, default=str) + "\n")


def record_sides(
    session: Session, *, held: Lease, sides: Sequence[Side], facts: dict[str, Any], days: float
) -> str:
    """Both results, the baseline's first: the candidate is judged against it. One sentence."""
    turns = planner.digest("turns", held.job_id, held.fence)[:32]
    said = {}
    for side in sorted(sides, key=lambda side: side.arm, reverse=True):
        job_id = held.job_id if side.arm == CANDIDATE else _job_of(session, held, side)
        if side.boots and (side.failure is None or side.arm == CANDIDATE):
            arm = arm_of(turns, side.arm, side.bench.wanted)
            said[side.arm] = record(session, job_id, side.bench, side.boots, facts, arm=arm)
        if side.arm == BASELINE:
            _judge(session, job_id, said.get(side.arm, ""), days)
    baseline = next(side for side in sides if side.arm == BASELINE)
    words = said[CANDIDATE]
    if baseline.failure is None:
        return words
    revision = baseline.bench.subject.revision
    name = f"{revision.engine} {revision.label}"
    return f"{words}; {name} could not be measured beside it: {baseline.failure.failure_class}"


def _job_of(session: Session, held: Lease, side: Side) -> int:
    """The job that the baseline would have been; it is over before anybody can lease it."""
    now, job = database_now(session), session.get_one(JobRow, held.job_id)
    wanted, bench = side.bench.wanted, side.bench
    failure = side.failure
    row = JobRow(
        kind=job.kind,
        queue=job.queue,
        state=State.FAILED if failure else State.SUCCEEDED,
        lane=job.lane,
        identity=_identity(bench, wanted),
        title=f"baseline in turns with job {job.id}: {bench.subject.revision.engine} "
        f"{bench.subject.revision.label} ({bench.scenario.word})",
        payload=wanted.model_dump(mode="json"),
        revision_id=wanted.revision_id,
        reason=f"the baseline of job {job.id}, booted in turns with it",
        source=job.source,
        cause={"in_turns_with": job.id},
        created_at=now,
        due_at=now,
        turn_at=now,
        started_at=now,
        finished_at=now,
        fence=1,
        attempts=1,
    )
    session.add(row)
    session.flush()
    if failure is not None:
        row.failure_class, row.blame = failure.failure_class, failure.blame.value
        row.message = wire.plain(failure.detail or failure.message)[:LONGEST_MESSAGE]
        row.advice = wire.plain(failure.advice)
        record_failure(session, row, failure, row.message, now)
    return cast(int, row.id)


def _identity(bench: Bench, wanted: BenchPayload) -> str:
    return planner.bench_identity(
        wanted, weights_sha256=bench.model.sha256, scenario=bench.scenario
    )


def _judge(session: Session, job_id: int, sentence: str, days: float) -> None:
    """What the baseline's end says of its own engine is known as after a job of its own."""
    row = work.job(session, job_id)
    row.message = row.message or sentence
    session.add(row)
    session.flush()
    births.job_ended(session, job_id, database_now(session), days=days)
