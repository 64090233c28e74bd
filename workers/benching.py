"""The bench job: verified artifact and weights in; boots measured, judged, stored as one result."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from sqlmodel import Session

from jobs import clock, compare, git, planner
from jobs.control import Control
from jobs.db import reading, writing
from jobs.errors import JobFailure, Permanent
from jobs.model import Blame, Boot, Flags, Lane, Validity
from jobs.payloads import BenchPayload
from jobs.scenarios import SCENARIOS, Scenario
from jobs.station import Record, Station
from jobs.store import fleet, results, rigs, work
from jobs.store.judging import judged
from jobs.store.leases import Lease
from jobs.summing import gravest, summary, usable_runs
from jobs.tables import BuildRow, ModelFileRow
from workers import artifacts
from workers.bench import run_boot
from workers.card_code import card_for
from workers.card_memory import card_memory
from workers.errands import ARTIFACT_PLACE, Errand, Subject, model_file, read_subject
from workers.flags import flags_in
from workers.gpu import ALL_LAYERS, Card, closing_card
from workers.headers import HeaderRead, is_twin, is_unread, read_local
from workers.host import environment_of, fingerprint, machine_facts
from workers.plan import Place, Plan, interpreter_mounts, launcher_of, weight_mounts
from workers.quiet import disturbance, marked, wait_for_quiet
from workers.sandbox import Limits, Mount, Sandbox
from workers.weight_store import being_read

MEMORY_SPARE = 0.9
"""Share of the machine's memory a server may take before it is ended."""


PATIENCE = 2
"""How many times the asked boots may be tried before a noisy machine makes a tainted result."""


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


def bench(station: Station, held: Lease, control: Control) -> Record:
    """Boot, measure, judge; the result and its verdict are stored with the end of the job."""
    wanted = BenchPayload.model_validate(held.payload)
    prepared, boots, facts = measured(Errand(station, held, control), wanted)
    return lambda session: _record(session, held, prepared, boots, facts)


def measured(errand: Errand, wanted: BenchPayload) -> tuple[Bench, list[Boot], dict[str, Any]]:
    """Everything checked, every boot done, and what the machine said of itself before."""
    station, prepared = errand.station, _prepare(errand, wanted)
    facts = machine_facts()
    place = Place(
        sandbox=prepared.sandbox,
        limits=Limits(memory_bytes=int(facts["memory_gib"] * 2**30 * MEMORY_SPARE)),
        runtime=station.settings.runtime,
        log=errand.log,
        marker=errand.marker,
        card=prepared.card,
        card_memory=prepared.card.held_by if prepared.card else card_memory(),
    )
    with being_read(prepared.weights), closing_card(prepared.card):
        boots = _undisturbed(errand, prepared.plan, place)
    return prepared, boots, facts


def _undisturbed(errand: Errand, plan: Plan, place: Place) -> list[Boot]:
    """Boot until enough boots were left alone, or `PATIENCE` runs out; all of them are kept."""
    boots: list[Boot] = []
    alone = 0
    while alone < plan.boots and len(boots) < PATIENCE * plan.boots:
        wait_for_quiet(errand.control, limit_seconds=errand.station.settings.quiet_seconds)
        boot = run_boot(
            plan,
            place,
            number=len(boots) + 1,
            control=errand.control,
            keep=lambda boot: _keep(errand, boot),
        )
        boots.append(marked(boot))
        alone += not disturbance(boot)
    return boots


def _keep(errand: Errand, boot: Boot) -> None:
    """Every boot is on disk as soon as it ends, whatever becomes of the job."""
    with errand.log.with_suffix(".boots.jsonl").open("a") as file:
        file.write(json.dumps(asdict(boot), default=str) + "\n")


def _prepare(errand: Errand, wanted: BenchPayload) -> Bench:
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
        scenario=SCENARIOS[wanted.scenario],
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


def _record(
    session: Session, held: Lease, bench: Bench, boots: Sequence[Boot], facts: dict[str, Any]
) -> str:
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
        command=_command(bench, boots),
        environment={**facts, "forkscout": version("forkscout"), "sandbox": bench.sandbox.name},
    )
    history = results.cell_history(session, found.cell)
    rigs.arrive(session, rig.name, environment_of(facts), now)
    if stands.validity is Validity.OK:
        rigs.learn(
            session,
            rig.name,
            wanted,
            revision=subject.revision.label,
            speeds=[each.speed for each in runs],
            text_sha256=steady_text(bench.scenario, boots),
            now=now,
        )
    if bench.header is not None:
        bench.header.put_in(model_file(session, wanted.model_file_id))
    row = results.record_result(session, held.job_id, found, now)
    verdict = judged(
        session, row, subject.revision_row, runs, standing=stands, history=history, now=now
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


def _command(bench: Bench, boots: Sequence[Boot]) -> dict[str, Any]:
    """What to type to get the same; paths are placeholders, digests say what stands there."""
    sandbox, plan, revision = bench.sandbox, bench.plan, bench.subject.revision
    places = {
        sandbox.path(plan.artifact): "<artifact>",
        sandbox.path(plan.model): "<weights>",
    }
    for role, mount in (("drafter", plan.drafter), ("projector", plan.projector)):
        if mount is not None:
            places[sandbox.path(mount)] = f"<{role}>"
    if plan.launcher:
        places[sandbox.path(plan.launcher)] = f"<forkscout>/jobs/engines/{plan.engine.LAUNCHER}"
    if boots:
        places[boots[0].effective.alias or "<alias>"] = "<alias>"
    request = plan.engine.request(plan.scenario, run=1, alias="<alias>")
    wanted = bench.wanted
    return {
        "server": [_placed(word, places) for word in boots[0].command] if boots else [],
        "env": dict(plan.env),
        "request": {"path": request.path, "body": dict(request.body)},
        "build": bench.build.provenance.get("steps", []),
        "source": _source_command(bench),
        "artifact_sha256": bench.build.artifact,
        "weights_sha256": bench.model.sha256,
        **{f"{role}_sha256": sha256 for role, sha256 in wanted.beside.items()},
        "forkscout": (
            f"forkscout submit bench --engine {revision.engine} --ref {revision.commit} "
            f"--target {shlex.quote(bench.model.name)} --scenario {bench.scenario.name} "
            f"--rig {wanted.rig} --context {wanted.context_tokens} "
            f"--runs {wanted.runs} --boots {wanted.boots}"
            + "".join(f" --{role} {shlex.quote(row.name)}" for role, row in bench.others.items())
        ),
    }


def _source_command(bench: Bench) -> str:
    """How to get exactly this source without us."""
    revision, engine = bench.subject.revision, bench.subject.engine_row
    if engine.repo:
        url = git.repo_url(revision.source)
        return (
            f"git clone --filter=blob:none {url} source && "
            f"git -C source checkout --detach {revision.commit}"
        )
    return (
        f"python -m pip download --no-deps --only-binary=:all: "
        f"{engine.package}=={revision.label}  # wheel sha256 {revision.commit}"
    )


def _placed(word: str, places: dict[str, str]) -> str:
    for path, name in places.items():
        word = word.replace(path, name)
    return word
