"""Runs the steps of a recipe: in the cage, or by the container engine of the machine."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.dialect import image_recipe
from jobs.engines.base import BuildPlaces
from jobs.model import BuildTarget, Step
from workers.build_causes import explained
from workers.compiler_cache import Layer
from workers.engine_client import EngineTool, engine_fault
from workers.errands import Errand, Subject
from workers.host import machine_facts
from workers.image_build import ImageBuild
from workers.proof import python_mounts
from workers.sandbox import Limits, Mount, Sandbox
from workers.steps import StepFailed, run_step

BUILD_MEMORY_BYTES = 16 * 2**30
MEMORY_PER_COMPILER = 3 * 2**30
"""What one compiler of an LLM engine's templates may need; more jobs get the build killed."""

COUNTED = re.compile(r"^\[\s*(\d+)(?:/(\d+)|%)\]|^Step (\d+)/(\d+) :")


@dataclass(frozen=True)
class Workshop:
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
        """Paths as the sandbox has them."""
        path = self.sandbox.path
        return BuildPlaces(
            source=path(self.source),
            work=path(self.work),
            output=path(self.output),
            python=f"{sys.prefix}/bin/python",
            jobs=parallel_jobs(),
            generator="Ninja" if shutil.which("ninja") else "Unix Makefiles",
        )

    def here(self, image: str) -> BuildPlaces:
        """Paths as this machine has them, for what an engine is told to make under that name."""
        source, work, output = (str(m.host) for m in (self.source, self.work, self.output))
        return replace(self.places(), source=source, work=work, output=output, image=image)


def parallel_jobs() -> int:
    """As many compilers as processors, fewer where memory would not do."""
    facts = machine_facts()
    by_memory = int(facts["memory_gib"] * 2**30 // MEMORY_PER_COMPILER)
    return max(1, min(int(facts["usable_cores"]), by_memory))


def run_recipe(
    errand: Errand, subject: Subject, target: BuildTarget, shop: Workshop
) -> Sequence[Step]:
    """Run all of it; the steps as they are told to others, free of this machine's folders."""
    steps = subject.family.build(subject.revision, target, shop.places())
    with ExitStack() as stack:
        images, outside = None, steps
        if target.via == image_recipe.VIA:
            settings = errand.station.settings
            tool = EngineTool(settings.docker_host)
            images = ImageBuild(tool, target, subject.revision.commit)
            outside = subject.family.build(subject.revision, target, shop.here(images.name))
            stack.enter_context(images.turn(settings.locks / "images", errand.control))
        for step, here in zip(steps, outside, strict=True):
            if images is not None and step.argv[0] == image_recipe.ENGINE:
                _run(errand, subject, shop, here, told=step, images=images)
            else:
                caged = replace(step, env={**shop.cache.env, **step.env})
                _run(errand, subject, shop, caged, told=step)
    return steps


def _run(
    errand: Errand,
    subject: Subject,
    shop: Workshop,
    step: Step,
    *,
    told: Step,
    images: ImageBuild | None = None,
) -> None:
    control, name = errand.control, step.name
    control.report(name)
    errand.say(f"{name}: {' '.join(told.argv)}"[:2000])
    offset = errand.log.stat().st_size

    def tell(line: str) -> None:
        if counted := COUNTED.match(line):
            done, total = counted[1] or counted[3], counted[2] or counted[4] or 100
            control.report(name, done=int(done), total=int(total))

    limits = Limits(
        memory_bytes=BUILD_MEMORY_BYTES, min_free_bytes=errand.station.settings.min_free_bytes
    )
    log, marker = errand.log, errand.marker
    try:
        if images is not None:
            images.run(
                step,
                shop.source.host,
                (shop.work,),
                log=log,
                limits=limits,
                control=control,
                marker=marker,
                on_line=tell,
            )
        else:
            run_step(
                shop.sandbox,
                step,
                shop.mounts,
                log=log,
                limits=limits,
                control=control,
                marker=marker,
                on_line=tell,
            )
    except StepFailed as failure:
        found = explained(failure, subject.family, offset=offset)
        if images is not None and found is failure and name != image_recipe.IMAGE:
            raise engine_fault(failure.detail) from failure  # no code of the fork ran in it
        raise found from failure
