"""Runs the steps that speak to a container engine, which no cage may reach; leaves nothing there.

The lines of a Dockerfile are root of their own container, with the engine's default rights: less
than a cage gives. They have no network, and no image that was made or fetched is started.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from jobs.control import Control
from jobs.dialect import dockerfile, image_recipe
from jobs.errors import JobFailure
from jobs.model import Blame, BuildTarget, Step
from workers.engine_client import EngineTool
from workers.limited import mortal
from workers.processes import MARKER_NAME
from workers.running import Running, unique_marker
from workers.sandbox import STEP_PATH, Enforced, Limits, Mount, Sandbox
from workers.steps import run_step
from workers.tree import HostTree

IMAGE = "forkscout-build"
REVISION_LABEL = "org.opencontainers.image.revision"
TURN_SECONDS = 0.5
CLEARINGS = 5


class ImageBuild:
    """One build at one engine, under a name of its own."""

    def __init__(self, tool: EngineTool, target: BuildTarget, commit: str) -> None:
        self.name = f"{IMAGE}-{secrets.token_hex(8)}"
        self._tool = tool
        self._target = target
        self._commit = commit
        self._fetched = ""

    def run(
        self,
        step: Step,
        source: Path,
        writable: Sequence[Mount],
        *,
        log: Path,
        limits: Limits,
        control: Control,
        marker: str,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        """Run one step of the recipe, whose paths are those of this machine.

        Raises as `run_step`, and `JobFailure` for a Dockerfile that would fetch something, for an
        image of another commit and, of class `disk_limit`, for one that is too large.
        """
        if step.argv[1] == "pull":
            if self._tool.says("image", "inspect", step.argv[-1]):
                return
            self._fetched = step.argv[-1]
        if step.name == image_recipe.IMAGE:
            self._check_file(source)
            step = bounded(step, limits)
        elif step.name == "container":
            self._check_image(step.argv[-2], limits)
        run_step(
            _Engine(self._tool),
            step,
            writable,
            log=log,
            limits=limits,
            control=control,
            marker=marker,
            on_line=on_line,
        )

    def _check_file(self, source: Path) -> None:
        pins = dict(self._target.pins)
        path = source / (pins.get("dockerfile") or image_recipe.DOCKERFILE)
        try:
            text = path.read_bytes()[: dockerfile.MOST_BYTES + 1].decode()
        except (OSError, ValueError) as error:
            raise _refused(f"{path.relative_to(source)} cannot be read: {error}") from error
        why = "it is larger than 1 MiB" if len(text) > dockerfile.MOST_BYTES else ""
        why = why or dockerfile.refusal(
            text,
            arguments=image_recipe.arguments(self._target.cuda_arch, pins),
            images=image_recipe.bases(pins),
        )
        if why:
            raise _refused(f"{path.relative_to(source)} is not built: {why}")

    def _check_image(self, image: str, limits: Limits) -> None:
        form = f'{{{{.Size}}}} {{{{index .Config.Labels "{REVISION_LABEL}"}}}}'
        said = self._tool.ask("image", "inspect", "--format", form, image).split()
        if int(said[0]) > limits.disk_bytes:
            raise JobFailure(
                f"the image takes {int(said[0]) / 2**30:.1f} GiB",
                failure_class="disk_limit",
                blame=Blame.ENGINE,
                phase=image_recipe.IMAGE,
                advice="Copy less into the last stage of the Dockerfile.",
            )
        label = said[1] if len(said) > 1 and image != self.name else ""
        if len(label) == len(self._commit) and label != self._commit:
            raise JobFailure(
                f"the image says that it was made of {label[:12]}, and {self._commit[:12]} is "
                "asked for",
                failure_class="image_of_another_commit",
                blame=Blame.CONFIGURATION,
                phase=image_recipe.BASE,
                advice="Pin the image and the tag of the same release.",
            )

    @contextmanager
    def turn(self, lock: Path, control: Control) -> Iterator[None]:
        """Hold the engine: what a build leaves there bears no name, so there is one at a time.

        Afterwards nothing of it is left but the bases that were fetched by their digest.
        """
        held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _taken(held):
                control.wait(TURN_SECONDS)
            before = _nameless(self._tool)
            try:
                yield
            finally:
                self._tool.says("rm", "--force", "--volumes", self.name)
                self._tool.says("rmi", "--force", self.name)
                if self._fetched and self._fetched == self._target.pin("image"):
                    self._tool.says("rmi", self._fetched)
                _clear(self._tool, before)
        finally:
            os.close(held)


def bounded(step: Step, limits: Limits) -> Step:
    """The step with the bounds that the builder inside the engine gives to each line."""
    words = ["--ulimit", f"fsize={limits.file_bytes}", "--ulimit", f"nofile={limits.open_files}"]
    words += ["--ulimit", f"nproc={limits.processes}", "--ulimit", "core=0"]
    if limits.memory_bytes is not None:
        words += [f"--memory={limits.memory_bytes}", f"--memory-swap={limits.memory_bytes}"]
    return replace(step, argv=(*step.argv[:2], *words, *step.argv[2:]))


def _refused(detail: str) -> JobFailure:
    return JobFailure(
        detail,
        failure_class="dockerfile_refused",
        blame=Blame.CONFIGURATION,
        phase=image_recipe.IMAGE,
        advice="A Dockerfile is built without network, over base images that are pinned by their "
        "digest (dev_image, run_image): see docs/builds.md.",
    )


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _clear(tool: EngineTool, before: set[str]) -> None:
    """Remove what a build that failed left in the engine, which may just be ending it."""
    for _ in range(CLEARINGS):
        left = _nameless(tool) - before
        if not left:
            return
        for image in left:
            words = ("ps", "--all", "--quiet", "--filter", f"ancestor={image}")
            for container in tool.ask(*words).split():
                tool.says("rm", "--force", "--volumes", container)
            tool.says("rmi", image)


def _nameless(tool: EngineTool) -> set[str]:
    """Images that nothing names; what was fetched by its digest bears that as a name."""
    words = ("image", "ls", "--digests", "--filter", "dangling=true")
    listed = tool.ask(*words, "--format", "{{.ID}} {{.Digest}}").splitlines()
    return {line.partition(" ")[0] for line in listed if line.endswith("<none>")}


class _Engine:
    """Starts the engine's command itself; what that does is done by the engine."""

    name = "container engine"
    caged = False

    def __init__(self, tool: EngineTool) -> None:
        self._tool = tool

    def path(self, mount: Mount) -> str:
        return str(mount.host)

    def showing(self, devices: Sequence[str]) -> Sandbox:
        return self

    def enforced(self) -> Enforced:
        return Enforced(by="the container engine")

    def start(
        self, step: Step, mounts: Sequence[Mount], *, log: Path, limits: Limits, marker: str
    ) -> Running:
        marker = unique_marker(marker)
        return Running(
            mortal([*self._tool.command, *step.argv[1:]]),
            env=self._environment(marker),
            cwd="/",
            log=log,
            output_bytes=limits.output_bytes,
            caged=False,
            tree=lambda pid: HostTree(pid, marker),
        )

    def _environment(self, marker: str) -> Mapping[str, str]:
        """The builder inside the engine: it alone bounds the memory of each line.

        It runs no front end that a Dockerfile names, and so fetches none.
        """
        own = {"PATH": STEP_PATH, "DOCKER_BUILDKIT": "0", MARKER_NAME: marker}
        return {**self._tool.environment, **own}
