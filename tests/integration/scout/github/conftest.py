"""The real chain on a GitHub of our own, watched into a database of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine
from support.github import GitHub
from support.scene import BEE, BUUN, TURBO, UPSTREAM, Scene


@pytest.fixture
def scene(database: Engine) -> Iterator[Scene]:
    with GitHub() as github:
        github.add(UPSTREAM, "ggml-org/llama.cpp", stars=90_000)
        yield Scene(github, database)


@pytest.fixture
def chain(scene: Scene) -> Scene:
    """The real chain: upstream, TheTom's fork, buun's fork of it, beellama's fork of that."""
    scene.github.add(TURBO, "TheTom/llama-cpp-turboquant", parent=UPSTREAM)
    scene.github.add(BUUN, "spiritbuun/buun-llama-cpp", parent=TURBO)
    scene.github.add(BEE, "Anbeeld/beellama.cpp", parent=BUUN, default_branch="main")
    scene.engine("upstream", "ggml-org/llama.cpp")
    scene.engine("buun", "spiritbuun/buun-llama-cpp")
    return scene
