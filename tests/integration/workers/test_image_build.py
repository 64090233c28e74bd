"""A real Dockerfile through a real engine: no network, bounded, an artifact and nothing left."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.base_image import IMAGE as BASE
from support.base_image import base_image

from jobs.control import Control
from jobs.errors import JobFailure, UsageError
from workers import artifacts
from workers.engine_client import EngineTool
from workers.image_build import ImageRecipe, build_image, prepare_base
from workers.sandbox import Limits
from workers.steps import StepFailed

pytestmark = pytest.mark.needs("docker", "debootstrap")
IMAGES_KEPT = ("forkscout-cage", BASE.partition(":")[0])
BUILD = """
FROM {base} AS build
ARG GREETING
COPY server.sh /src/server.sh
RUN mkdir /app && sed "s/GREETING/$GREETING/" /src/server.sh > /app/llama-server
RUN chmod +x /app/llama-server
FROM build AS server
"""


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """One build at a time in one engine: what a build leaves there bears no name."""
    with Path(tempfile.gettempdir(), f"forkscout-test-images-{os.getuid()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def tool() -> EngineTool:
    return EngineTool(os.environ.get("DOCKER_HOST", ""))


def _build(
    tool: EngineTool,
    folder: Path,
    dockerfile: str,
    *,
    limits: Limits = Limits(),  # noqa: B008
    timeout_seconds: float = 60.0,
) -> Path:
    context = folder / "context"
    context.mkdir()
    (context / "server.sh").write_text("#!/bin/sh\necho GREETING\n")
    (context / "Dockerfile").write_text(dockerfile.format(base=base_image(tool)))
    recipe = ImageRecipe(context, "Dockerfile", "/app", "server", {"GREETING": "hello"})
    build_image(
        tool,
        recipe,
        folder / "output",
        log=folder / "log",
        limits=limits,
        control=Control(),
        marker=f"test-{os.getpid()}/image",
        timeout_seconds=timeout_seconds,
    )
    return folder / "output"


def _left(tool: EngineTool) -> set[str]:
    images = tool.ask("image", "ls", "--format", "{{.Repository}}").splitlines()
    images += tool.ask("image", "ls", "--quiet", "--filter", "dangling=true").splitlines()
    containers = tool.ask("ps", "--all", "--format", "{{.Names}}").splitlines()
    return {name for name in (*images, *containers) if not name.startswith(IMAGES_KEPT)}


def test_a_dockerfile_becomes_an_artifact(tool: EngineTool, tmp_path: Path) -> None:
    """Target, arguments and copied files are used; the image itself does not stay."""
    before = _left(tool)
    output = _build(tool, tmp_path, BUILD)
    assert (output / "llama-server").read_text() == "#!/bin/sh\necho hello\n"
    digest = artifacts.store(output, tmp_path / "store")
    found = artifacts.find(tmp_path / "store", digest)
    assert found is not None
    assert os.access(found / "llama-server", os.X_OK)
    assert _left(tool) <= before


def test_a_dockerfile_has_no_network(tool: EngineTool, tmp_path: Path) -> None:
    """Its lines see no interface but loopback, and packages cannot be fetched."""
    before = _left(tool)
    interfaces = BUILD.replace("sed ", "ls /sys/class/net > /app/net && sed ", 1)
    output = _build(tool, tmp_path, interfaces)
    assert (output / "net").read_text().split() == ["lo"]
    assert _left(tool) <= before


def test_a_line_that_fails_is_the_engines_fault(tool: EngineTool, tmp_path: Path) -> None:
    """The step fails with the builder's exit code, the log says which line, nothing stays."""
    before = _left(tool)
    with pytest.raises(StepFailed) as caught:
        _build(tool, tmp_path, BUILD + "RUN echo so it goes && exit 7\n")
    assert caught.value.failure_class == "exit"
    assert "so it goes" in (tmp_path / "log").read_text()
    assert _left(tool) <= before


def test_an_endless_line_ends_with_its_time(tool: EngineTool, tmp_path: Path) -> None:
    """The engine's own containers go with the command."""
    before = _left(tool)
    with pytest.raises(StepFailed) as caught:
        _build(tool, tmp_path, BUILD + "RUN sleep 3600\n", timeout_seconds=8)
    assert caught.value.failure_class == "timeout"
    assert _left(tool) <= before


def test_a_large_image_is_not_taken_out(tool: EngineTool, tmp_path: Path) -> None:
    """What is over the limit is refused before a byte of it is copied."""
    with pytest.raises(JobFailure) as caught:
        _build(tool, tmp_path, BUILD, limits=Limits(disk_bytes=1 << 20))
    assert caught.value.failure_class == "disk_limit"
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("image", ["debian", "debian:12", "--help@sha256:x"])
def test_a_base_without_a_digest_is_not_fetched(
    tool: EngineTool, image: str, tmp_path: Path
) -> None:
    """A tag may be another image tomorrow."""
    with pytest.raises(UsageError, match="digest"):
        prepare_base(tool, image, log=tmp_path / "log", control=Control(), marker="x")
