"""A place to run steps in, which must be empty at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import real_engine, tiny_model
from support.place import MARKER, Place
from support.stub_bench import StubBench

from workers import processes
from workers.sandbox import Sandbox


@pytest.fixture
def place(sandbox: Sandbox, tmp_path: Path) -> Iterator[Place]:
    yield Place(sandbox, tmp_path)
    assert processes.kill_marked(MARKER) == 0, "a test left processes behind"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[StubBench]:
    """Runs a bench of a stub with the given behaviour; nothing of it may live afterwards."""
    found = StubBench(tmp_path)
    yield found
    found.check_gone()


@pytest.fixture(scope="session")
def real_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the wheel of the real server."""
    return real_engine.fetch_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def real_artifact(real_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as a finished artifact."""
    return real_engine.build(real_wheel, tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="session")
def tiny_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model."""
    return tiny_model.write(tmp_path_factory.mktemp("weights") / "tiny.gguf")
