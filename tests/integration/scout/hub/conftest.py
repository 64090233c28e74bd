"""The model hub's places of our watch list, on a hub of our own, over a database of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.hub_scene import HubScene
from support.hugging_face import HuggingFace


@pytest.fixture
def scene(database: Engine, tmp_path: Path) -> Iterator[HubScene]:
    with HuggingFace() as hub:
        yield HubScene(hub, database, tmp_path / "hub")
