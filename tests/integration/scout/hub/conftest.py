"""The model hub's places of our watch list, on a hub of our own, over a database of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.hub_scene import ONLY, HubScene
from support.hugging_face import HuggingFace


@pytest.fixture
def scene(database: Engine, tmp_path: Path) -> Iterator[HubScene]:
    with HuggingFace() as hub:
        yield HubScene(hub, database, tmp_path / "hub")


@pytest.fixture
def known(scene: HubScene) -> HubScene:
    """One repository with one card, known since the first look."""
    scene.hub.add(ONLY, {"README.md": b"one"})
    scene.watch("author:spiritbuun")
    scene.look()
    scene.later(minutes=10)
    return scene
