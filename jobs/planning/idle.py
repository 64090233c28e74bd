"""Pushes that change nothing of what is built, judged by the paths the recipe uses; pure."""

from __future__ import annotations

from jobs.dialect import image_recipe
from jobs.dialect.sparse import none_used
from jobs.engines.registry import FAMILIES
from jobs.planning.world import Event, KnownEngine

PUSH = "fork_pushed"
SHOWN = 3


def is_idle(event: Event, engine: KnownEngine) -> bool:
    """Whether a push is known to change no file that a build of this engine can read.

    Asked of the commit before it, which has to be the one that we know. A Dockerfile reads all.
    """
    paths, before = event.facts.get("paths"), event.facts.get("before")
    if event.kind != PUSH or not isinstance(paths, list) or engine.family not in FAMILIES:
        return False
    if any(target.via == image_recipe.VIA for target in engine.targets):
        return False
    if event.parent is None or event.parent.value.commit != before:
        return False
    return none_used(map(str, paths), FAMILIES[engine.family].SPARSE_PATTERNS)


def told(event: Event) -> str:
    """In a few words, which files it changed."""
    paths = [str(path) for path in event.facts.get("paths") or ()]
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return f"it changes {', '.join(paths[:SHOWN]) or 'no file'}{more}, and nothing that is built"
