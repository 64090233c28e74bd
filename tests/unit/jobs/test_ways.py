"""The ways to a build beside a compiler: the fork's own Dockerfile, an image, a release file."""

from __future__ import annotations

import pytest

from jobs import planner
from jobs.engines import llama_cpp
from jobs.engines.base import BuildPlaces
from jobs.errors import JobFailure
from jobs.model import BuildTarget, Revision

REVISION = Revision("beellama", "llama.cpp", "633cd34fb6df" + "0" * 28, "v0.1.2", "owner/name")
PLACES = BuildPlaces("/build/source", "/build/work", "/build/output")
IMAGE = "images.example.org/owner/engine@sha256:" + "a" * 64


def steps(via: str, **more: object) -> list[tuple[str, str]]:
    target = BuildTarget("olares-5090m", via, **more)
    return [(step.name, " ".join(step.argv)) for step in llama_cpp.build(REVISION, target, PLACES)]


def test_the_forks_dockerfile_is_built_with_these_words():
    """The whole command: its server's stage, every ARG said, no network, nothing pulled."""
    pins = (
        ("cuda_version", "12.8.1"),
        ("dev_image", f"base-dev@sha256:{'b' * 64}"),
        ("run_image", f"base-run@sha256:{'c' * 64}"),
    )
    assert steps("docker", cuda_arch="120", pins=pins) == [
        (
            "image",
            "docker buildx build --progress plain"
            " --file /build/source/.devops/cuda.Dockerfile --target server"
            " --network none --pull=false --no-cache --provenance=false"
            " --build-arg CUDA_VERSION=12.8.1 --build-arg CUDA_DOCKER_ARCH=120"
            f" --build-arg BASE_CUDA_DEV_CONTAINER=base-dev@sha256:{'b' * 64}"
            f" --build-arg BASE_CUDA_RUN_CONTAINER=base-run@sha256:{'c' * 64}"
            f" --metadata-file {PLACES.work}/image.json"
            f" --output type=local,dest={PLACES.work}/image /build/source",
        ),
        (
            "install",
            f"find {PLACES.work}/image/app -maxdepth 1 ( -name llama-server -o -name lib*.so* )"
            " -exec cp -a -t /build/output -- {} +",
        ),
    ]


def test_what_a_dockerfile_is_not_told_it_is_told_the_default():
    """So that the command says all of it."""
    words = steps("docker")[0][1]
    assert "--build-arg CUDA_VERSION=12.8.1 --build-arg CUDA_DOCKER_ARCH=default" in words
    assert "BASE_CUDA" not in words


def test_an_image_is_taken_apart_and_never_run():
    """It is known by its digest; a container is made of it, copied from and removed."""
    found = dict(steps("docker", pins=(("image", IMAGE),)))
    assert list(found) == ["pull", "container", "copy", "install"]
    assert found["pull"] == f"docker pull --quiet {IMAGE}"
    assert "--network none --pull never" in found["container"]
    assert not any(" run " in words or " start " in words for words in found.values())


@pytest.mark.parametrize(
    ("via", "more"),
    [
        ("docker", {"pins": (("image", "owner/engine:latest"),)}),
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
