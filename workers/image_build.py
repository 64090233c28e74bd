"""Builds a Dockerfile without network over a base that is already here, and takes a folder out.

Its RUN lines are root of their own container, with the engine's default rights: less than a cage
gives. So it runs nothing of its own accord, and no image that it made is started.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.control import Control
from jobs.errors import JobFailure, UsageError
from jobs.model import Blame, Step
from workers.engine_client import EngineTool
from workers.limited import mortal
from workers.processes import MARKER_NAME
from workers.running import Running, unique_marker
from workers.sandbox import STEP_PATH, Enforced, Limits, Mount, Sandbox
from workers.steps import run_step
from workers.tree import HostTree

IMAGE = "forkscout-build"
PREPARE_SECONDS = 3600.0
CLEARINGS = 5


@dataclass(frozen=True)
class ImageRecipe:
    """What to build and which folder of the last image is the artifact."""

    context: Path
    dockerfile: str
    folder: str
    target: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


def prepare_base(
    tool: EngineTool,
    image: str,
    *,
    log: Path,
    control: Control,
    marker: str,
    timeout_seconds: float = PREPARE_SECONDS,
) -> None:
    """Fetch a base by its digest: the one step that has a network, and runs no code."""
    if "@sha256:" not in image or image.startswith("-"):
        raise UsageError(
            f"the base image {image[:120]!r} is not named by its digest",
            advice="Name it as NAME@sha256:DIGEST; a tag may be another image tomorrow.",
        )
    step = Step("base", ("pull", "--quiet", "--", image), timeout_seconds=timeout_seconds)
    run_step(_Engine(tool), step, (), log=log, limits=Limits(), control=control, marker=marker)


def build_image(
    tool: EngineTool,
    recipe: ImageRecipe,
    output: Path,
    *,
    log: Path,
    limits: Limits,
    control: Control,
    marker: str,
    timeout_seconds: float,
    on_line: Callable[[str], None] | None = None,
) -> None:
    """Build, and copy the recipe's folder to the new folder `output`; the image is gone after.

    Raises as `run_step`, and `JobFailure` of class `disk_limit` for an image that is too large.
    """
    name = f"{IMAGE}-{secrets.token_hex(8)}"
    words = tuple(_words(recipe, name, limits))
    step = Step("image", words, timeout_seconds=timeout_seconds)
    before = _nameless(tool)
    try:
        run_step(
            _Engine(tool),
            step,
            (),
            log=log,
            limits=limits,
            control=control,
            marker=marker,
            on_line=on_line,
        )
        size_bytes = int(tool.ask("image", "inspect", "--format", "{{.Size}}", name))
        if size_bytes > limits.disk_bytes:
            raise JobFailure(
                f"the image takes {size_bytes / 2**30:.1f} GiB",
                failure_class="disk_limit",
                blame=Blame.ENGINE,
                phase="image",
                advice="Copy less into the last stage of the Dockerfile.",
            )
        tool.ask("create", "--name", name, "--network", "none", name, "-")
        tool.ask("cp", f"{name}:{recipe.folder}", str(output))
    finally:
        tool.says("rm", "--force", "--volumes", name)
        tool.says("rmi", "--force", name)
        _clear(tool, before)


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
    return set(tool.ask("image", "ls", "--quiet", "--filter", "dangling=true").split())


def _words(recipe: ImageRecipe, name: str, limits: Limits) -> Sequence[str]:
    bounds = ["--ulimit", f"fsize={limits.file_bytes}", "--ulimit", f"nofile={limits.open_files}"]
    bounds += ["--ulimit", f"nproc={limits.processes}", "--ulimit", "core=0"]
    if limits.memory_bytes is not None:
        bounds += [f"--memory={limits.memory_bytes}", f"--memory-swap={limits.memory_bytes}"]
    wanted = [f"--target={recipe.target}"] if recipe.target else []
    for key, value in recipe.arguments.items():
        wanted += ["--build-arg", f"{key}={value}"]
    file = recipe.context / recipe.dockerfile
    return (
        *("build", "--network", "none", "--pull=false", "--no-cache", "--force-rm", "--rm"),
        *("--tag", name, "--file", str(file), *bounds, *wanted, "--", str(recipe.context)),
    )


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
            mortal([*self._tool.command, *step.argv]),
            # The builder inside the engine: it alone bounds the memory of each line.
            env={
                **self._tool.environment,
                "PATH": STEP_PATH,
                "DOCKER_BUILDKIT": "0",
                MARKER_NAME: marker,
            },
            cwd="/",
            log=log,
            output_bytes=limits.output_bytes,
            caged=False,
            tree=lambda pid: HostTree(pid, marker),
        )
