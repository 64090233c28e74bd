"""The build job: source in, recipe's steps in the sandbox, one artifact with provenance out."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from sqlmodel import Session

from jobs import clock
from jobs.control import Control
from jobs.db import reading
from jobs.engines.base import BuildPlaces, classify
from jobs.errors import JobFailure
from jobs.model import BuildTarget, Step, Trust
from jobs.payloads import BuildPayload
from jobs.station import Record, Station
from jobs.store import results
from jobs.store.leases import Lease
from jobs.tables import BuildRow
from jobs.trees import scratch
from workers import artifacts, programs
from workers.card_code import archs_of
from workers.compiler_cache import Layer, counts, open_layer, trim
from workers.errands import ARTIFACT_PLACE, Errand, Subject, read_subject
from workers.flags import ask_help, flags_in
from workers.host import machine_facts, tool_version
from workers.plan import Place, interpreter_mounts
from workers.proof import python_mounts
from workers.sandbox import Limits, Mount, Sandbox
from workers.source import bring_source
from workers.steps import StepFailed, run_step

BUILD_MEMORY_BYTES = 16 * 2**30
MEMORY_PER_COMPILER = 3 * 2**30
"""What one compiler of an LLM engine's templates may need; more jobs get the build killed."""

COUNTED = re.compile(r"^\[\s*(\d+)(?:/(\d+)|%)\]")
LOG_TAIL_BYTES = 256 * 1024
TOOLS = ("cmake", "ninja", "c++", "git", "nvcc", "ccache")


@dataclass(frozen=True)
class _Workshop:
    """The folders of one build and how its steps see them."""

    source: Mount
    work: Mount
    output: Mount
    sandbox: Sandbox
    cache: Layer

    @property
    def mounts(self) -> tuple[Mount, ...]:
        own = Path(sys.prefix)
        own_mount = Mount(own, str(own))
        places = (self.source, self.work, self.output, own_mount)
        return (*places, *self.cache.mounts, *python_mounts())

    def places(self) -> BuildPlaces:
        path = self.sandbox.path
        return BuildPlaces(
            source=path(self.source),
            work=path(self.work),
            output=path(self.output),
            python=f"{sys.prefix}/bin/python",
            jobs=parallel_jobs(),
            generator="Ninja" if shutil.which("ninja") else "Unix Makefiles",
        )


def parallel_jobs() -> int:
    """As many compilers as processors, fewer where memory would not do."""
    facts = machine_facts()
    by_memory = int(facts["memory_gib"] * 2**30 // MEMORY_PER_COMPILER)
    return max(1, min(int(facts["usable_cores"]), by_memory))


def build(station: Station, held: Lease, control: Control) -> Record:
    """Make the artifact of one revision, unless the store already holds it."""
    wanted = BuildPayload.model_validate(held.payload)
    errand = Errand(station, held, control)
    with reading(station.database) as session:
        known = results.build_with_identity(session, wanted.build_identity)
    if known is not None and artifacts.find(station.settings.artifacts, known.artifact):
        return lambda _session: f"already built: artifact {known.artifact[:12]}"
    subject = read_subject(station, wanted.revision_id)
    sandbox = errand.sandbox_for(subject.engine_row)
    artifacts.check_free(station.settings.root, station.settings.min_free_bytes)
    started = time.monotonic()
    with (
        artifacts.disk_full_is_infrastructure(),
        scratch("build-", station.settings.scratch) as folder,
    ):
        made = _make(errand, subject, wanted, sandbox, folder)
    row = BuildRow(
        identity=wanted.build_identity,
        revision_id=wanted.revision_id,
        job_id=held.job_id,
        target=wanted.target,
        artifact=made.artifact,
        recipe=made.provenance["recipe"],
        size_bytes=made.size_bytes,
        duration_seconds=round(time.monotonic() - started, 3),
        sandbox=sandbox.name,
        provenance={k: v for k, v in made.provenance.items() if k != "help"},
        created_at=clock.now(),
    )

    def record(session: Session) -> str:
        results.record_build(session, row)
        return (
            f"artifact {made.artifact[:12]}, {made.size_bytes / 1e6:.1f} MB "
            f"in {row.duration_seconds:.1f} s, {sandbox.name}"
        )

    return record


@dataclass(frozen=True)
class _Made:
    artifact: str
    size_bytes: int
    provenance: dict[str, Any]


def _make(
    errand: Errand, subject: Subject, wanted: BuildPayload, sandbox: Sandbox, folder: Path
) -> _Made:
    source = folder / "source"
    bring_source(errand, subject, source)
    for name in ("work", "output"):
        (folder / name).mkdir()
    work = Mount(folder / "work", "/build/work", writable=True)
    settings = errand.station.settings
    cache = open_layer(
        settings.compiler_cache,
        sandbox,
        engine=subject.revision.engine,
        source=subject.revision.source,
        trust=Trust(subject.engine_row.trust),
        work=work,
        size_bytes=settings.compiler_cache_bytes if subject.family.FOREIGN_SOURCE else 0,
        writes_base=subject.revision.engine == settings.compiler_cache_base,
    )
    shop = _Workshop(
        source=Mount(source, "/build/source"),
        work=work,
        output=Mount(folder / "output", "/build/output", writable=True),
        sandbox=sandbox,
        cache=cache,
    )
    target = BuildTarget(wanted.target, wanted.via, wanted.cuda_arch, wanted.options)
    steps = subject.family.build(subject.revision, target, shop.places())
    try:
        for step in steps:
            cached = replace(step, env={**cache.env, **step.env})
            _run(errand, subject, shop, cached, step.name)
    finally:
        if cache.key:
            trim(settings.compiler_cache, settings.compiler_cache_bytes, keep=cache.key)
    compiled = counts(folder / "work") if cache.key else None
    if subject.family.FOREIGN_SOURCE:
        programs.check(folder / "output")
    digest = artifacts.store(folder / "output", errand.station.settings.artifacts)
    tree = cast(Path, artifacts.find(errand.station.settings.artifacts, digest))
    provenance = {
        "source": subject.revision.source,
        "commit": subject.revision.commit,
        "label": subject.revision.label,
        "recipe": _recipe_digest(steps),
        "steps": [list(step.argv) for step in steps],
        "sandbox": sandbox.name,
        "tools": _tool_versions(),
        "cache": compiled.stored() if compiled else None,
        "machine": {k: v for k, v in machine_facts().items() if k != "load_average"},
        "cuda_archs": str(archs_of(tree)),
        "help": _describe(errand, subject, sandbox, tree),
    }
    artifacts.write_provenance(errand.station.settings.artifacts, digest, provenance)
    return _Made(digest, artifacts.size_bytes(tree), provenance)


def _recipe_digest(steps: Sequence[Step]) -> str:
    text = "\n".join("\0".join(step.argv) for step in steps)
    return hashlib.sha256(text.encode()).hexdigest()


def _run(errand: Errand, subject: Subject, shop: _Workshop, step: Step, name: str) -> None:
    control = errand.control
    control.report(name)
    errand.say(f"{name}: {' '.join(step.argv)}"[:2000])

    def tell(line: str) -> None:
        counted = COUNTED.match(line)
        if counted:
            control.report(name, done=int(counted[1]), total=int(counted[2] or 100))

    try:
        run_step(
            shop.sandbox,
            step,
            shop.mounts,
            log=errand.log,
            limits=Limits(
                memory_bytes=BUILD_MEMORY_BYTES,
                min_free_bytes=errand.station.settings.min_free_bytes,
            ),
            control=control,
            marker=errand.marker,
            on_line=tell,
        )
    except StepFailed as failure:
        raise explained(failure, subject) from failure


def explained(failure: StepFailed, subject: Subject) -> JobFailure:
    """The failure with the cause its log names, where a rule of the family knows it."""
    if failure.failure_class != "exit" or not failure.log.exists():
        return failure
    with failure.log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - LOG_TAIL_BYTES))
        text = file.read().decode(errors="replace")
    found = classify(text, subject.family.FAILURES)
    if found is None:
        return failure
    return JobFailure(
        f"{failure.detail}: {found.line[:300]}",
        failure_class=found.rule.name,
        blame=found.rule.blame,
        phase=failure.phase,
        advice=found.rule.advice,
    )


def _describe(errand: Errand, subject: Subject, sandbox: Sandbox, tree: Path) -> str:
    """What the finished build says of itself, read once and kept with it."""
    place = Place(
        sandbox=sandbox,
        limits=Limits(memory_bytes=BUILD_MEMORY_BYTES),
        runtime=errand.station.settings.runtime,
        log=errand.log,
        marker=errand.marker,
    )
    try:
        text = ask_help(
            subject.family,
            Mount(tree, ARTIFACT_PLACE),
            place,
            control=errand.control,
            mounts=interpreter_mounts(subject.family),
        )
    except StepFailed as failure:
        raise explained(failure, subject) from failure
    flags_in(subject.family, text)
    return text


def _tool_versions() -> dict[str, str]:
    """What stood on the path; the first line each tool says of its version."""
    return {name: version for name in TOOLS if (version := tool_version(name))}
