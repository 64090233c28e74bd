"""A look at a few sources of GitHub alone, without those that a person's word would add."""

from __future__ import annotations

from typing import Any

from support.scene import Scene

from scout.github.desk import Desk
from scout.github.rounds import Round, look_around


def look_at(scene: Scene, *sources: str, **how: Any) -> Round:
    """One round of these sources."""
    desk = Desk(scene.database, scene.client, lambda: scene.now)
    return look_around(desk, sources, **how)
