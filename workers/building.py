"""The build job: source in, recipe's steps in the sandbox, one artifact with provenance out."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from sqlmodel import Session

from jobs import clock
from jobs.control import Control
from jobs.db import reading
from jobs.dialect import image_recipe
from jobs.dialect.options import Option
from jobs.model import BuildTarget, Step, Trust
from jobs.payloads import BuildPayload, by_dockerfile
from jobs.station import Record, Station
from jobs.store import results
from jobs.store.leases import Lease
from jobs.tables import BuildRow
from jobs.trees import scratch
from workers import artifacts, programs
from workers.build_causes import DESCRIBE, explained, of_source
from workers.build_steps import BUILD_MEMORY_BYTES, Workshop, run_recipe
from workers.card_code import archs_of
from workers.compiler_cache import counts, open_layer, trim
from workers.errands import ARTIFACT_PLACE, Errand, Subject, read_subject
from workers.flags import ask_help, flags_in
from workers.host import machine_facts, tool_version
from workers.plan import Place, interpreter_mounts
from workers.same_source import made_before, source_identity, taken_over
from workers.sandbox import Limits, Mount, Sandbox
from workers.source import bring_source
from workers.steps import StepFailed

TOOLS = ("cmake", "ninja", "c++", "git", "nvcc", "ccache")
ENGINE_TOOLS = ("docker", "git")


def build(station: Station, held: Lease, control: Control) -> Record:
    """Make the artifact of one revision, unless the store already holds it."""
    wanted = BuildPayload.model_validate(held.payload)
    errand = Errand(station, held, control)
    store = station.settings.artifacts
    with reading(station.database) as session:
        known = results.build_with_identity(session, wanted.build_identity)
        foreign = known is not None and not results.may_use(session, known, wanted.revision_id)
    if known is not None and not foreign and artifacts.find(store, known.artifact):
        if not known.lost or artifacts.is_whole(store, known.artifact):
            return partial(_say_found, known.identity)
        artifacts.discard(store, known.artifact)
    subject = read_subject(station, wanted.revision_id)
    errand.check_approval(wanted)
    sandbox = errand.sandbox_for(subject.engine_row)
    artifacts.check_free(station.settings.root, station.settings.min_free_bytes)
    target = BuildTarget(wanted.target, wanted.via, wanted.cuda_arch, wanted.options, wanted.pins)
    started = time.monotonic()
    with (
        artifacts.disk_full_is_infrastructure(),
        scratch("build-", station.settings.scratch) as folder,
    ):
        with of_source(subject.family):
            bring_source(errand, subject, target, folder / "source")
        identity = source_identity(subject, target, folder / "source")
        same = made_before(errand, subject, identity)
        if same is not None:
            return taken_over(errand, wanted, same, subject.revision)
        made = _make(errand, subject, target, sandbox, folder)
    row = BuildRow(
        identity=wanted.build_identity,
        revision_id=wanted.revision_id,
        job_id=held.job_id,
        target=wanted.target,
        artifact=made.artifact,
        recipe=made.provenance["recipe"],
        source_tree=identity,
        size_bytes=made.size_bytes,
        duration_seconds=round(time.monotonic() - started, 3),
        sandbox=made.provenance["sandbox"],
        provenance={
            **{k: v for k, v in made.provenance.items() if k != "help"},
            "phases": control.phases(),
        },
        created_at=clock.now(),
    )

    def record(session: Session) -> str:
        if foreign:
            results.lose_build(session, wanted.build_identity)
        results.record_build(session, row, made.options)
        return (
            f"artifact {made.artifact[:12]}, {made.size_bytes / 1e6:.1f} MB "
            f"in {row.duration_seconds:.1f} s, {row.sandbox}"
        )

    return record


def _say_found(identity: str, session: Session) -> str:
    found = results.find_again(session, identity)
    return f"already built: artifact {found.artifact[:12]}, build {found.id}"


@dataclass(frozen=True)
class _Made:
    artifact: str
    size_bytes: int
    options: Sequence[Option]
    provenance: dict[str, Any]


def _make(
    errand: Errand, subject: Subject, target: BuildTarget, sandbox: Sandbox, folder: Path
) -> _Made:
    for name in ("work", "output"):
        (folder / name).mkdir()
    work = Mount(folder / "work", "/build/work", writable=True)
    settings = errand.station.settings
    cache_bytes = settings.compiler_cache_bytes
    proposed = subject.revision_row.proposed
    with reading(errand.station.database) as session:
        shared = results.is_shared(session, subject.engine_row.id or 0, subject.revision.commit)
    cache = open_layer(
        settings.compiler_cache,
        sandbox,
        engine=subject.revision.engine,
        source=subject.revision.source,
        trust=Trust.APPROVE if proposed else Trust(subject.engine_row.trust),
        work=work,
        size_bytes=0 if shared or not subject.family.FOREIGN_SOURCE else cache_bytes,
        writes_base=not proposed and subject.revision.engine == settings.compiler_cache_base,
    )
    shop = Workshop(
        source=Mount(folder / "source", "/build/source"),
        work=work,
        output=Mount(folder / "output", "/build/output", writable=True),
        sandbox=sandbox,
        cache=cache,
    )
    try:
        steps = run_recipe(errand, subject, target, shop)
    finally:
        if cache.key:
            trim(settings.compiler_cache, settings.compiler_cache_bytes, keep=cache.key)
    compiled = counts(folder / "work") if cache.key else None
    if subject.family.FOREIGN_SOURCE:
        programs.check(folder / "output")
    errand.control.report("store")
    digest = artifacts.store(folder / "output", errand.station.settings.artifacts)
    tree = cast(Path, artifacts.find(errand.station.settings.artifacts, digest))
    errand.control.report(DESCRIBE)
    said = _describe(errand, subject, sandbox, tree)
    provenance = {
        "source": subject.revision.source,
        "commit": subject.revision.commit,
        "label": subject.revision.label,
        "recipe": _recipe_digest(steps),
        "steps": [list(step.argv) for step in steps],
        "sandbox": _made_in(target, sandbox),
        "pins": dict(target.pins),
        "tools": _tool_versions(ENGINE_TOOLS if target.via == image_recipe.VIA else TOOLS),
        "cache": compiled.stored() if compiled else None,
        "private": bool(cache.key),
        "machine": {k: v for k, v in machine_facts().items() if k != "load_average"},
        "cuda_archs": str(archs_of(tree)),
        "help": said,
    }
    artifacts.write_provenance(errand.station.settings.artifacts, digest, provenance)
    options = subject.family.read_options(said)
    return _Made(digest, artifacts.size_bytes(tree), options, provenance)


def _recipe_digest(steps: Sequence[Step]) -> str:
    text = "\n".join("\0".join(step.argv) for step in steps)
    return hashlib.sha256(text.encode()).hexdigest()


def _describe(errand: Errand, subject: Subject, sandbox: Sandbox, tree: Path) -> str:
    """What the finished build says of itself, read once and kept with it."""
    place = Place(
        sandbox=sandbox,
        limits=Limits(memory_bytes=BUILD_MEMORY_BYTES),
        runtime=errand.station.settings.runtime,
        log=errand.log,
        marker=errand.marker,
    )
    errand.log.touch(mode=0o600)
    offset = errand.log.stat().st_size
    try:
        text = ask_help(
            subject.family,
            Mount(tree, ARTIFACT_PLACE),
            place,
            control=errand.control,
            mounts=interpreter_mounts(subject.family),
        )
    except StepFailed as failure:
        raise explained(failure, subject.family, offset=offset) from failure
    flags_in(subject.family, text)
    return text


def _made_in(target: BuildTarget, sandbox: Sandbox) -> str:
    """What held the code that made it: not the cage, where that was a Dockerfile's."""
    dockerfile = by_dockerfile({"via": target.via, "pins": target.pins})
    return image_recipe.MADE_IN if dockerfile else sandbox.name


def _tool_versions(names: Sequence[str]) -> dict[str, str]:
    """What stood on the path; the first line each tool says of its version."""
    return {name: version for name in names if (version := tool_version(name))}
