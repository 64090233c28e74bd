"""How a fork's own Dockerfile, or an image by its digest, becomes an artifact; it runs nothing.

The commands speak to a docker engine, which no cage may reach: a worker runs them itself. Only
fetching an image by its digest has a network; what a Dockerfile installs is in its base images.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jobs.model import Step

ENGINE = "docker"
"""The first word of each step that a worker runs outside the cage."""

VIA = "docker"
MADE_IN = "container engine"
DOCKERFILE = ".devops/cuda.Dockerfile"
STAGE = "server"
INSIDE = "/app"
DEFAULT_CUDA = "12.8.1"
BASE, IMAGE = "base", "image"
BASES = {"dev_image": "BASE_CUDA_DEV_CONTAINER", "run_image": "BASE_CUDA_RUN_CONTAINER"}
"""Our word for each base image, and the ARG that the forks' Dockerfiles have for it."""

BUILD_SECONDS = 4 * 3600.0
BY_DIGEST = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,200}@sha256:[0-9a-f]{64}", re.ASCII)
CUDA_VERSION = r"[0-9]{1,3}(\.[0-9]{1,3}){1,3}"
DOCKERFILE_PATH = r"(?!.*\.\.)\.?\w[\w.-]*(/\.?\w[\w.-]*){0,9}"
STAGE_NAME = r"[A-Za-z0-9][\w.-]{0,99}"
_SHAPES = {
    **dict.fromkeys(
        ("image", "dev_image", "run_image"), (BY_DIGEST.pattern, "no image by its digest")
    ),
    "cuda_version": (CUDA_VERSION, "no version"),
    "dockerfile": (DOCKERFILE_PATH, "no path inside the repository"),
    "stage": (STAGE_NAME, "no name of a stage"),
}
KEPT = ("(", "-name", "llama-server", "-o", "-name", "lib*.so*", ")")


def wrong_pin(pins: Mapping[str, str]) -> str:
    """Why these pins cannot be meant; empty where they can."""
    for name, (pattern, says) in _SHAPES.items():
        if pins.get(name) and not re.fullmatch(pattern, pins[name], re.ASCII):
            return f"{name} = {pins[name][:120]!r} is {says}"
    if pins.get("image") and not pins.get("tag"):
        return "an image without the tag of the commit that it was made of"
    return ""


def arguments(cuda_arch: str | None, pins: Mapping[str, str]) -> dict[str, str]:
    """The Dockerfile's own ARGs, each said even where it has a default."""
    return {
        "CUDA_VERSION": pins.get("cuda_version") or DEFAULT_CUDA,
        "CUDA_DOCKER_ARCH": cuda_arch or "default",
        **{word: pins[name] for name, word in BASES.items() if pins.get(name)},
    }


def bases(pins: Mapping[str, str]) -> tuple[str, ...]:
    """The images that a Dockerfile may start from."""
    return tuple(dict.fromkeys(pins[name] for name in BASES if pins.get(name)))


def dockerfile_steps(
    *,
    source: str,
    work: str,
    output: str,
    name: str,
    cuda_arch: str | None,
    pins: Mapping[str, str],
) -> Sequence[Step]:
    """Build the server's stage of the fork's Dockerfile, and take its files out of it."""
    given = (
        word
        for key, value in arguments(cuda_arch, pins).items()
        for word in ("--build-arg", f"{key}={value}")
    )
    build = (
        *(ENGINE, "build", "--network", "none", "--pull=false", "--no-cache"),
        *("--force-rm", "--rm", "--tag", name),
        *("--file", f"{source}/{pins.get('dockerfile') or DOCKERFILE}"),
        *("--target", pins.get("stage") or STAGE),
        *given,
        *("--", source),
    )
    return (
        *(_pulled(image) for image in bases(pins)),
        Step(IMAGE, build, timeout_seconds=BUILD_SECONDS, silence_seconds=BUILD_SECONDS / 2),
        *_taken_out(work=work, output=output, image=name, name=name),
    )


def prebuilt_steps(*, work: str, output: str, name: str, image: str) -> Sequence[Step]:
    """Take the files out of an image, known by its digest; nothing of it is run."""
    return (_pulled(image), *_taken_out(work=work, output=output, image=image, name=name))


def _pulled(image: str) -> Step:
    return Step(BASE, (ENGINE, "pull", "--quiet", "--", image), timeout_seconds=3600)


def _taken_out(*, work: str, output: str, image: str, name: str) -> Sequence[Step]:
    """A container is made, copied from, and never started."""
    create = (ENGINE, "create", "--name", name, "--network", "none", "--pull", "never", image, "-")
    folder = f"{work}/image"
    kept = ("-exec", "cp", "-a", "-t", output, "--", "{}", "+")
    return (
        Step("container", create, timeout_seconds=120),
        Step("copy", (ENGINE, "cp", f"{name}:{INSIDE}", folder), timeout_seconds=600),
        Step("install", ("find", folder, "-maxdepth", "1", *KEPT, *kept), timeout_seconds=300),
    )
