"""Dockerfiles and images by digest through whole jobs and a real engine; nothing is left there."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support import tiny_engine
from support.base_image import base_layer
from support.registry import Registry, layer_of, registry
from support.waiting import wait_for
from support.workshop import Workshop, workshop

from jobs import clock, db
from jobs.build_tables import BuildFlagsRow
from jobs.control import Control
from jobs.dialect import image_recipe
from jobs.errors import JobFailure
from jobs.lifecycle import NOT_APPROVED
from jobs.model import Blame, BuildTarget, State
from jobs.store import approvals
from jobs.tables import JobRow
from workers import artifacts
from workers.engine_client import EngineTool
from workers.image_build import REVISION_LABEL, ImageBuild
from workers.sandbox import Limits, Mount
from workers.steps import StepFailed

pytestmark = pytest.mark.needs("docker", "debootstrap", "bwrap", "git")
IMAGES_KEPT = ("forkscout-cage", "127.0.0.1:")
DOCKERFILE = """
ARG CUDA_VERSION=12.0.0
ARG BASE_CUDA_DEV_CONTAINER=nvidia/cuda:${CUDA_VERSION}-devel
ARG BASE_CUDA_RUN_CONTAINER=nvidia/cuda:${CUDA_VERSION}-runtime

FROM ${BASE_CUDA_DEV_CONTAINER} AS build
ARG CUDA_DOCKER_ARCH=default
WORKDIR /app
COPY . .
RUN mkdir full && sed "s/ARCH/$CUDA_DOCKER_ARCH/" server.sh > full/llama-server \\
    # what a server needs beside it
    && ls /sys/class/net > full/libnet.so && chmod 755 full/llama-server

FROM ${BASE_CUDA_RUN_CONTAINER} AS base
FROM base AS server
COPY --from=build /app/full /app
RUN echo words > /app/README
ENTRYPOINT ["/app/llama-server"]
"""
SERVER = "#!/bin/sh\n# for ARCH\ncat <<'END'\n" + tiny_engine.HELP + "END\n"
FILES = {".devops/cuda.Dockerfile": DOCKERFILE, "server.sh": SERVER}


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """One build at a time in one engine: what a build leaves there bears no name."""
    with Path(tempfile.gettempdir(), f"forkscout-test-images-{os.getuid()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def tool() -> EngineTool:
    return EngineTool(os.environ.get("DOCKER_HOST", ""))


@pytest.fixture
def images() -> Iterator[Registry]:
    with registry() as made:
        yield made


@pytest.fixture
def base(images: Registry, tool: EngineTool) -> Iterator[str]:
    image = images.offer("base", base_layer())
    yield image
    tool.says("rmi", image)


@pytest.fixture
def shop(database, tmp_path, hub) -> Workshop:
    """A fork with a Dockerfile and a tag, trusted like any of its maintainers' commits."""
    repository = hub.add("owner/tiny")
    repository.commit(FILES)
    repository.git("tag", "v1")
    repository.push("HEAD:refs/heads/main", "v1")
    made = workshop(database, tmp_path / "home", repository)
    host = os.environ.get("DOCKER_HOST", "")
    settings = made.station.settings.model_copy(update={"docker_host": host})
    made.station = replace(made.station, settings=settings)
    return made


def build(shop: Workshop, **pins: str) -> JobRow:
    """Ask for the build of `main` as the watch list would; a commit that waits is approved."""
    job = shop.ask_via(rig="cpu", via="docker", cuda_arch="120", **pins)
    if job.blocked_by == NOT_APPROVED:
        with db.writing(shop.database) as session:
            sha = shop.repository.git("rev-parse", "HEAD").strip()
            approvals.approve(session, f"tiny@{sha}", by="ann", now=clock.now())
    shop.work()
    return shop.job(job.id or 0)


def left(tool: EngineTool) -> set[str]:
    form = "{{.Repository}} {{.ID}}"
    listed = tool.ask("image", "ls", "--all", "--format", form).splitlines()
    listed += tool.ask("ps", "--all", "--format", "{{.Names}}").splitlines()
    return {name for name in listed if not name.startswith(IMAGES_KEPT)}


def test_a_dockerfile_goes_through_the_whole_job(shop, tool, base):
    """Base by its digest, a word for its lines, stage and ARGs used, provenance, options."""
    before = left(tool)
    job = build(shop, dev_image=base, run_image=base, cuda_version="12.8.1")
    assert job.state == State.SUCCEEDED, job.message
    [row] = shop.builds()
    tree = artifacts.find(shop.station.settings.artifacts, row.artifact)
    assert tree is not None
    assert sorted(path.name for path in tree.iterdir()) == ["libnet.so", "llama-server"]
    assert (tree / "llama-server").read_text().startswith("#!/bin/sh\n# for 120\n")
    assert (tree / "libnet.so").read_text().split() == ["lo"]
    told = row.provenance
    names = [each["name"] for each in told["phases"]]
    assert names == [
        *("fetch", "base", "image", "container", "copy", "install", "store", "describe")
    ]
    assert (row.sandbox, told["pins"]["dev_image"]) == (image_recipe.MADE_IN, base)
    assert told["commit"] == shop.repository.git("rev-parse", "HEAD").strip()
    assert told["tools"]["docker"].startswith("Docker version")
    assert "/build/source/.devops/cuda.Dockerfile" in told["steps"][1]
    with db.reading(shop.database) as session:
        assert len(session.get_one(BuildFlagsRow, row.id).options) == 3
    assert left(tool) <= before
    assert shop.ask().done == 1


def test_nothing_of_a_dockerfile_runs_before_a_persons_word(shop, images, base):
    """Also where the engine's own commits are trusted."""
    job = shop.ask_via(rig="cpu", via="docker", dev_image=base, run_image=base)
    assert (job.state, job.blocked_by) == (State.BLOCKED, NOT_APPROVED)
    assert shop.work() == 0
    assert images.asked == []


@pytest.mark.parametrize(
    ("line", "failure_class", "blame", "says"),
    [
        ("RUN echo so it goes && exit 7", "image_error", Blame.ENGINE, "non-zero code: 7"),
        (
            "RUN echo '/src/x.cpp:3:1: error: expected' && exit 1",
            *("compile_error", Blame.ENGINE, "x.cpp"),
        ),
        (
            "RUN apt-get update; apt-get install -y cuda-nvcc",
            *("base_incomplete", Blame.CONFIGURATION, "Unable to locate package cuda-nvcc"),
        ),
        ("ADD http://{address}/more /x", "dockerfile_refused", Blame.CONFIGURATION, "'ADD'"),
        ("FROM {address}/more", "dockerfile_refused", Blame.CONFIGURATION, "no pin names"),
        (
            "COPY --from={address}/more / /",
            *("dockerfile_refused", Blame.CONFIGURATION, "no stage of its own"),
        ),
    ],
)
def test_a_line_that_fails_or_fetches_is_named(
    shop, tool, images, base, line, failure_class, blame, says
):
    """The cause by the table, before anything is fetched for it; nothing stays."""
    before = left(tool)
    extra = line.format(address=images.address)
    shop.repository.commit({".devops/cuda.Dockerfile": f"{DOCKERFILE}{extra}\n"})
    shop.repository.push()
    job = build(shop, dev_image=base, run_image=base)
    assert (job.state, job.failure_class, job.blame) == (State.FAILED, failure_class, blame)
    assert says in job.message
    assert job.progress["phases"][-1]["name"] == "image"
    assert not [path for path in images.asked if "more" in path]
    assert shop.builds() == []
    assert left(tool) <= before


def test_an_image_by_its_digest_goes_through_the_whole_job(shop, tool, images):
    """Its files are taken out, nothing of it is run, and it does not stay; no word is needed."""
    before = left(tool)
    image = images.offer("engine", layer_of({"app/llama-server": SERVER, "app/other": "x"}))
    job = build(shop, image=image, tag="v1")
    assert job.state == State.SUCCEEDED, job.message
    [row] = shop.builds()
    assert row.sandbox == "bubblewrap"
    names = [each["name"] for each in row.provenance["phases"]]
    assert names == ["fetch", "base", "container", "copy", "install", "store", "describe"]
    assert row.provenance["pins"] == {"image": image, "tag": "v1"}
    assert left(tool) <= before
    assert not tool.says("image", "inspect", image)


@pytest.mark.parametrize(
    ("pins", "failure_class", "blame"),
    [
        ({"tag": "v2"}, "asset_of_another_commit", Blame.CONFIGURATION),
        ({"label": "e" * 40}, "image_of_another_commit", Blame.CONFIGURATION),
        ({"digest": "f" * 64}, "image_missing", Blame.CONFIGURATION),
        ({"path": "usr/llama-server"}, "image_missing", Blame.CONFIGURATION),
        ({"address": "127.0.0.1:9"}, "fetch_failed", Blame.INFRASTRUCTURE),
    ],
)
def test_an_image_that_is_not_what_was_asked_for(shop, tool, images, pins, failure_class, blame):
    """Of another commit, not there, without a server, or with nobody who answers."""
    shop.repository.git("commit", "--quiet", "--allow-empty", "--message=x")
    shop.repository.git("tag", "v2")
    shop.repository.git("reset", "--quiet", "--hard", "v1")
    shop.repository.push("v2")
    labels = {REVISION_LABEL: pins.get("label", "")}
    layer = layer_of({pins.get("path", "app/llama-server"): SERVER})
    image = images.offer("engine", layer, labels)
    if "digest" in pins:
        image = f"{images.address}/engine@sha256:{pins['digest']}"
    if "address" in pins:
        image = image.replace(images.address, pins["address"]).replace("sha256:", "sha256:00")[:-2]
    before = left(tool)
    job = build(shop, image=image, tag=pins.get("tag", "v1"))
    assert (job.failure_class, job.blame) == (failure_class, blame), job.message
    assert shop.builds() == []
    assert left(tool) <= before


def run(tool: EngineTool, folder: Path, base: str, line: str, *, seconds=60.0, **limits) -> None:
    """The steps of a Dockerfile up to the container, under limits of their own."""
    for name in ("source", "work"):
        (folder / name).mkdir()
    (folder / "source/Dockerfile").write_text(f"FROM {base} AS server\n{line}\n")
    pins = (("dev_image", base), ("run_image", base), ("dockerfile", "Dockerfile"))
    images = ImageBuild(tool, BuildTarget("cpu", "docker", pins=pins), "a" * 40)
    steps = image_recipe.dockerfile_steps(
        source=str(folder / "source"),
        work=str(folder / "work"),
        output=str(folder / "output"),
        name=images.name,
        cuda_arch=None,
        pins=dict(pins),
    )
    control = Control()
    with images.turn(folder / "lock", control):
        for step in steps[:3]:
            images.run(
                replace(step, timeout_seconds=seconds),
                folder / "source",
                (Mount(folder / "work", "/work", writable=True),),
                log=folder / "log",
                limits=Limits(**limits),
                control=control,
                marker=f"test-{os.getpid()}/image",
            )


def test_an_endless_line_ends_with_its_time(tool, tmp_path, base):
    """The engine's own containers go with the command."""
    before = left(tool)
    with pytest.raises(StepFailed) as caught:
        run(tool, tmp_path, base, "RUN sleep 3600", seconds=12)
    assert caught.value.failure_class == "timeout"
    wait_for(lambda: left(tool) <= before, seconds=60, what="the end of its container")


def test_a_large_image_is_not_taken_out(tool, tmp_path, base):
    """What is over the limit is refused before a byte of it is copied."""
    before = left(tool)
    with pytest.raises(JobFailure) as caught:
        run(tool, tmp_path, base, "RUN true", disk_bytes=1 << 20)
    assert caught.value.failure_class == "disk_limit"
    assert left(tool) <= before


def test_a_line_may_use_so_much_memory(tool, tmp_path, base):
    """The builder inside the engine bounds each line."""
    with pytest.raises(StepFailed):
        run(tool, tmp_path, base, "RUN head -c 400M /dev/zero | tail", memory_bytes=64 << 20)
    assert "returned a non-zero code: 137" in (tmp_path / "log").read_text()
