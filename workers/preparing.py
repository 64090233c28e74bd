"""Everything a bench must know and hold before its first boot, checked; it starts nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from sqlmodel import Session

from jobs.db import reading, writing
from jobs.errors import JobFailure, Permanent
from jobs.model import Blame, Flags
from jobs.own_scenarios import asked_by
from jobs.payloads import BenchPayload
from jobs.scenarios import Scenario
from jobs.station import Station
from jobs.store import results
from jobs.tables import BuildRow, ModelFileRow
from workers import artifacts
from workers.card_code import card_for
from workers.errands import ARTIFACT_PLACE, Errand, Subject, model_file, read_subject
from workers.flags import flags_in
from workers.gpu import ALL_LAYERS, Card
from workers.headers import HeaderRead, is_twin, is_unread, read_local
from workers.plan import MOST_WARM_UPS, Plan, interpreter_mounts, launcher_of, weight_mounts
from workers.sandbox import Mount, Sandbox


@dataclass(frozen=True)
class Bench:
    """Everything known before the first boot."""

    wanted: BenchPayload
    subject: Subject
    scenario: Scenario
    build: BuildRow
    model: ModelFileRow
    others: dict[str, ModelFileRow]
    weights: tuple[Path, ...]
    card: Card | None
    sandbox: Sandbox
    plan: Plan
    header: HeaderRead | None


def prepare(errand: Errand, wanted: BenchPayload) -> Bench:
    station, control = errand.station, errand.control
    subject = read_subject(station, wanted.revision_id)
    errand.check_not_taken_back(wanted.revision_id)
    with reading(station.database) as session:
        model = model_file(session, wanted.model_file_id)
        others = _beside(session, wanted)
        build = results.build_with_identity(session, wanted.build_identity)
    control.report("check artifact")
    tree, flags = _artifact(station, build, wanted, subject)
    card = card_for(tree)
    control.report("check weights")
    weights = errand.weights(model)
    header = read_local(weights, check=control.check) if is_unread(model) else None
    twin = is_twin(weights[0], check=control.check)
    target, *further = weight_mounts(weights)
    firsts: dict[str, Mount] = {}
    for role, row in others.items():
        files = errand.weights(row)
        twin = twin or is_twin(files[0], check=control.check)
        firsts[role], *more = weight_mounts(files, role)
        weights, further = (*weights, *files), [*further, *more]
    plan = Plan(
        engine=subject.family,
        scenario=asked_by(wanted.scenario, wanted.own_scenario),
        flags=flags,
        artifact=Mount(tree, ARTIFACT_PLACE),
        model=target,
        context_tokens=wanted.context_tokens,
        threads=threads(),
        runs=wanted.runs,
        boots=wanted.boots,
        launcher=launcher_of(subject.family),
        mounts=(*further, *interpreter_mounts(subject.family)),
        intent=wanted.intent,
        extra_flags=wanted.flags,
        env=wanted.env,
        most_warm_ups=MOST_WARM_UPS,
        drafter=firsts.get("drafter"),
        projector=firsts.get("projector"),
        is_twin=twin,
        gpu_layers=ALL_LAYERS if card else 0,
    )
    sandbox = errand.sandbox_for(subject.engine_row, devices=card.devices() if card else ())
    return Bench(
        wanted,
        subject,
        plan.scenario,
        cast(BuildRow, build),
        model,
        others,
        weights,
        card,
        sandbox,
        plan,
        header,
    )


def _beside(session: Session, wanted: BenchPayload) -> dict[str, ModelFileRow]:
    """Drafter and projector by role; one whose bytes are not those asked for is refused."""
    ids = {"drafter": wanted.drafter_file_id, "projector": wanted.projector_file_id}
    found = {role: model_file(session, number) for role, number in ids.items() if number}
    for role, sha256 in wanted.beside.items():
        if role not in found or found[role].sha256 != sha256:
            raise Permanent(
                f"the {role} of this bench is not known with sha256 {sha256[:12]}",
                advice="submit the bench again",
            )
    return found


def threads() -> int:
    """Threads for a server on this machine: one per core we may use."""
    return len(os.sched_getaffinity(0))


def _artifact(
    station: Station, build: BuildRow | None, wanted: BenchPayload, subject: Subject
) -> tuple[Path, Flags]:
    root = station.settings.artifacts
    if build is None or artifacts.find(root, build.artifact) is None:
        raise _lost(station, wanted, "artifact_missing", "is not in the store")
    try:
        artifacts.verify(root, build.artifact)
        text = str(artifacts.read_provenance(root, build.artifact).get("help", ""))
    except JobFailure as damage:
        artifacts.discard(root, build.artifact)
        words = "is not what was stored, and was thrown away"
        raise _lost(station, wanted, "artifact_damaged", words) from damage
    return cast(Path, artifacts.find(root, build.artifact)), flags_in(subject.family, text)


def _lost(station: Station, wanted: BenchPayload, failure_class: str, words: str) -> JobFailure:
    """The failure of a bench whose artifact is gone; the next request for the build makes it."""
    with writing(station.database) as session:
        results.lose_build(session, wanted.build_identity)
    return JobFailure(
        f"the artifact of this build {words}",
        failure_class=failure_class,
        blame=Blame.CONFIGURATION,
        phase="check artifact",
        advice="submit the bench again; it builds the revision first",
    )
