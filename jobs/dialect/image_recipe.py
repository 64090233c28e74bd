"""How a fork's own Dockerfile, or an image by its digest, becomes an artifact; it runs nothing.

The commands speak to a docker engine, which no cage may reach: a worker runs them itself. Packages
come in the base images, prepared in a step of its own; the build has no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jobs.model import Step

DOCKERFILE = ".devops/cuda.Dockerfile"
STAGE = "server"
INSIDE = "/app"
DEFAULT_CUDA = "12.8.1"
BUILD_SECONDS = 4 * 3600.0
BY_DIGEST = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,200}@sha256:[0-9a-f]{64}", re.ASCII)
VERSION = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){1,3}", re.ASCII)
KEPT = ("(", "-name", "llama-server", "-o", "-name", "lib*.so*", ")")


def wrong_pin(pins: Mapping[str, str]) -> str:
    """Why these pins cannot be meant; empty where they can."""
    for name in ("image", "dev_image", "run_image"):
        if pins.get(name) and not BY_DIGEST.fullmatch(pins[name]):
            return f"{name} = {pins[name][:120]!r} is no image by its digest"
    if pins.get("cuda_version") and not VERSION.fullmatch(pins["cuda_version"]):
        return f"cuda_version = {pins['cuda_version'][:40]!r} is no version"
    return ""


def dockerfile_steps(
    *, source: str, work: str, output: str, cuda_arch: str | None, pins: Mapping[str, str]
) -> Sequence[Step]:
    """Build the server's stage of the fork's Dockerfile, and take its files out of it."""
    return (
        Step(
            "image",
            (
                *("docker", "buildx", "build", "--progress", "plain"),
                *("--file", f"{source}/{DOCKERFILE}", "--target", STAGE),
                *("--network", "none", "--pull=false", "--no-cache", "--provenance=false"),
                *(
                    word
                    for name, value in _arguments(cuda_arch, pins)
                    for word in ("--build-arg", f"{name}={value}")
                ),
                *("--metadata-file", f"{work}/image.json"),
                *("--output", f"type=local,dest={work}/image"),
                source,
            ),
            timeout_seconds=BUILD_SECONDS,
            silence_seconds=BUILD_SECONDS / 2,
        ),
        _take_out(f"{work}/image{INSIDE}", output),
    )


def prebuilt_steps(*, work: str, output: str, image: str) -> Sequence[Step]:
    """Take the files out of an image, known by its digest; nothing of it is run."""
    return (
        Step("pull", ("docker", "pull", "--quiet", image), timeout_seconds=3600),
        Step(
            "container",
            (
                *("docker", "create", "--network", "none", "--pull", "never"),
                *("--cidfile", f"{work}/container", image),
            ),
            timeout_seconds=120,
        ),
        Step(
            "copy",
            (
                *("sh", "-c", 'docker cp "$(cat "$1")":"$2" "$3" && docker rm "$(cat "$1")"'),
                *("copy", f"{work}/container", INSIDE, f"{work}/image"),
            ),
            timeout_seconds=600,
        ),
        _take_out(f"{work}/image", output),
    )


def _arguments(cuda_arch: str | None, pins: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The Dockerfile's own ARGs, each said even where it has a default."""
    yield "CUDA_VERSION", pins.get("cuda_version") or DEFAULT_CUDA
    yield "CUDA_DOCKER_ARCH", cuda_arch or "default"
    if pins.get("dev_image"):
        yield "BASE_CUDA_DEV_CONTAINER", pins["dev_image"]
    if pins.get("run_image"):
        yield "BASE_CUDA_RUN_CONTAINER", pins["run_image"]


def _take_out(folder: str, output: str) -> Step:
    return Step(
        "install",
        (
            *("find", folder, "-maxdepth", "1", *KEPT),
            *("-exec", "cp", "-a", "-t", output, "--", "{}", "+"),
        ),
        timeout_seconds=300,
    )
