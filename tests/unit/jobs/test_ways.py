"""The ways to a build beside a compiler: the fork's own Dockerfile, an image, a release file."""

from __future__ import annotations

import pytest

from jobs import planner
from jobs.engines import llama_cpp
from jobs.engines.base import BuildPlaces
from jobs.errors import JobFailure
from jobs.model import BuildTarget, Revision, Step
from workers.image_build import bounded
from workers.sandbox import Limits

REVISION = Revision("beellama", "llama.cpp", "633cd34fb6df" + "0" * 28, "v0.1.2", "owner/name")
PLACES = BuildPlaces("/build/source", "/build/made", "/build/output")
IMAGE = "images.example.org/owner/engine@sha256:" + "a" * 64


def steps(via: str, **more: object) -> list[tuple[str, str]]:
    target = BuildTarget("olares-5090m", via, **more)
    return [(step.name, " ".join(step.argv)) for step in llama_cpp.build(REVISION, target, PLACES)]


def test_the_forks_dockerfile_is_built_with_these_words():
    """All of it: bases by digest, the server's stage, every ARG said, no network for its lines."""
    dev, run = f"base-dev@sha256:{'b' * 64}", f"base-run@sha256:{'c' * 64}"
    pins = (("cuda_version", "12.8.1"), ("dev_image", dev), ("run_image", run))
    assert steps("docker", cuda_arch="120", pins=pins) == [
        ("base", f"docker pull --quiet -- {dev}"),
        ("base", f"docker pull --quiet -- {run}"),
        (
            "image",
            "docker build --network none --pull=false --no-cache --force-rm --rm"
            " --tag forkscout-build --file /build/source/.devops/cuda.Dockerfile --target server"
            " --build-arg CUDA_VERSION=12.8.1 --build-arg CUDA_DOCKER_ARCH=120"
            f" --build-arg BASE_CUDA_DEV_CONTAINER={dev} --build-arg BASE_CUDA_RUN_CONTAINER={run}"
            " -- /build/source",
        ),
        (
            "container",
            "docker create --name forkscout-build --network none --pull never forkscout-build -",
        ),
        ("copy", f"docker cp forkscout-build:/app {PLACES.work}/image"),
        (
            "install",
            f"find {PLACES.work}/image -maxdepth 1 ( -name llama-server -o -name lib*.so* )"
            " -exec cp -a -t /build/output -- {} +",
        ),
    ]


def test_a_worker_adds_the_bounds_of_each_line():
    """So that one line cannot take the machine; the rest of the command stays as it is."""
    step = Step("image", ("docker", "build", "--network", "none", "--", "/source"))
    limits = Limits(memory_bytes=1 << 30, processes=100, file_bytes=1 << 20, open_files=64)
    assert " ".join(bounded(step, limits).argv) == (
        "docker build --ulimit fsize=1048576 --ulimit nofile=64 --ulimit nproc=100 --ulimit core=0"
        " --memory=1073741824 --memory-swap=1073741824 --network none -- /source"
    )


def test_what_a_dockerfile_is_not_told_it_is_told_the_default():
    """So that the command says all of it."""
    words = steps("docker")[0][1]
    assert "--build-arg CUDA_VERSION=12.8.1 --build-arg CUDA_DOCKER_ARCH=default" in words
    assert "BASE_CUDA" not in words


def test_another_dockerfile_and_stage_may_be_named():
    """A fork keeps it where it likes."""
    words = steps("docker", pins=(("dockerfile", "docker/Dockerfile"), ("stage", "light")))[0][1]
    assert "--file /build/source/docker/Dockerfile --target light" in words


def test_an_image_is_taken_apart_and_never_run():
    """It is known by its digest; a container is made of it, copied from and removed."""
    found = dict(steps("docker", pins=(("image", IMAGE), ("tag", "v0.1.2"))))
    assert list(found) == ["base", "container", "copy", "install"]
    assert found["base"] == f"docker pull --quiet -- {IMAGE}"
    assert found["container"].endswith(f"--network none --pull never {IMAGE} -")
    assert not any(" run " in words or " start " in words for words in found.values())


@pytest.mark.parametrize(
    ("via", "more"),
    [
        ("docker", {"pins": (("image", "owner/engine:latest"), ("tag", "v1"))}),
        ("docker", {"pins": (("image", IMAGE),)}),
        ("docker", {"pins": (("dockerfile", "../Dockerfile"),)}),
        ("docker", {"pins": (("dockerfile", "/etc/Dockerfile"),)}),
        ("docker", {"pins": (("dockerfile", "--file"),)}),
        ("docker", {"pins": (("stage", "--privileged"),)}),
        ("docker", {"pins": (("image", f"--privileged@sha256:{'a' * 64}"),)}),
        ("docker", {"pins": (("dev_image", f"a b@sha256:{'a' * 64}"),)}),
        ("docker", {"pins": (("cuda_version", "12.8.1 --privileged"),)}),
        ("docker", {"cuda_arch": "120 -DGGML_CUDA_FA_ALL_QUANTS=ON"}),
        ("docker", {"options": ("-DGGML_CUDA_FA_ALL_QUANTS=ON",)}),
        ("wheel", {}),
        ("vagrant", {}),
    ],
)
def test_what_cannot_be_meant_is_unsupported(via, more):
    """Names that move, words that would be options of docker, ways that this family lacks."""
    with pytest.raises(JobFailure) as caught:
        steps(via, **more)
    assert caught.value.failure_class == "unsupported"


def test_pins_are_part_of_what_a_build_is():
    """Another file of the release is another build; a target without pins keeps its digest."""
    one, two = (("asset", "a.tar.gz"), ("sha256", "1" * 64)), (("asset", "a.tar.gz"),)
    found = {
        planner.build_identity(REVISION, BuildTarget("gpu", "asset", pins=pins))
        for pins in (one, two, ())
    }
    assert len(found) == 3
    assert BuildTarget("gpu", "asset", pins=one).pin("asset") == "a.tar.gz"
    assert BuildTarget("gpu", "asset").pin("asset") == ""
