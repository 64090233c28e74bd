"""What a bench leaves in rows: its result with every boot, and the verdict; it measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, cast

from sqlmodel import Session

from jobs import clock, compare, planner
from jobs.model import Boot, Lane, Validity
from jobs.scenarios import Scenario
from jobs.store import arms, fleet, results, rigs, work
from jobs.store.arms import Arm
from jobs.store.judging import judged
from jobs.summing import gravest, summary, usable_runs
from workers.errands import model_file
from workers.host import environment_of, fingerprint
from workers.preparing import Bench
from workers.reproduction import command_of


def record(
    session: Session,
    job_id: int,
    bench: Bench,
    boots: Sequence[Boot],
    facts: dict[str, Any],
    *,
    arm: Arm | None = None,
) -> str:
    """Store the result of a job with its verdict; that of an arm against the other one."""
    now = clock.now()
    wanted, subject = bench.wanted, bench.subject
    rig = fleet.describe_rig(session, wanted.rig, fingerprint(facts), facts, now)
    series = planner.series_key(
        engine=subject.revision.engine,
        weights_sha256=bench.model.sha256,
        scenario=bench.scenario,
        payload=wanted,
        target=bench.build.target,
    )
    worth = Validity.TWIN if bench.plan.is_twin else Validity.OK
    runs = usable_runs(boots)
    stands = compare.standing(
        runs,
        runs_asked=wanted.runs,
        boots_asked=wanted.boots,
        **gravest(boots),
    )
    found = results.Finished(
        build_id=cast(int, bench.build.id),
        revision_id=wanted.revision_id,
        engine_id=cast(int, subject.engine_row.id),
        model_file_id=wanted.model_file_id,
        drafter_file_id=wanted.drafter_file_id,
        projector_file_id=wanted.projector_file_id,
        rig_id=cast(int, rig.id),
        series=series,
        cell=planner.digest(series, rig.fingerprint, bench.sandbox.name, facts["kernel"]),
        stack=wanted.stack,
        scenario=bench.scenario.key,
        context_tokens=wanted.context_tokens,
        sandbox=bench.sandbox.name,
        validity=stands.validity,
        validity_reason=stands.reason,
        summary=summary(boots, usable_runs(boots, worth=worth), worth=worth),
        boots=boots,
        command=command_of(bench, boots),
        environment={**facts, "forkscout": version("forkscout"), "sandbox": bench.sandbox.name},
    )
    history = results.cell_history(session, found.cell)
    rigs.arrive(session, rig.name, environment_of(facts), now)
    if stands.validity is Validity.OK:
        rigs.learn(
            session,
            rig.name,
            wanted.model_copy(update={"against": None}),
            revision=subject.revision.label,
            speeds=[each.speed for each in runs],
            text_sha256=steady_text(bench.scenario, boots),
            now=now,
        )
    if bench.header is not None:
        bench.header.put_in(model_file(session, wanted.model_file_id))
    row = results.record_result(session, job_id, found, now)
    if arm is not None:
        arms.add(session, cast(int, row.id), arm)
    is_candidate = arm is not None and arm.arm == arms.CANDIDATE
    verdict = judged(
        session,
        row,
        subject.revision_row,
        runs,
        standing=stands,
        history=history,
        now=now,
        beside=arms.beside(session, arm) if arm is not None and is_candidate else None,
    )
    work.enqueue(
        session,
        [planner.publish_request(lane=Lane.FRESH, reason=f"result {row.id}")],
        now,
    )
    return verdict.sentence


def first_text(boot: Boot) -> str:
    """The digest of what the first measured run of a boot said."""
    return next((m.text_sha256 or "" for m in boot.measurements if not m.warmup), "")


def steady_text(scenario: Scenario, boots: Sequence[Boot]) -> str:
    """What every boot says word for word; empty where it need not, or did not."""
    said = {first_text(boot) for boot in boots}
    return said.pop() if scenario.temperature == 0 and len(said) == 1 else ""
