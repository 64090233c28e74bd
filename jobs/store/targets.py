"""What has to be built of an engine for a rig; reads a row, queues nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.engines.registry import FAMILIES
from jobs.model import BuildTarget
from jobs.tables import EngineRow

PINS = (
    *("asset", "tag", "sha256"),
    *("image", "cuda_version", "dev_image", "run_image", "dockerfile", "stage"),
)
"""What a target may name beside its way, in the words of the watch list."""


def build_target(entry: Mapping[str, Any]) -> BuildTarget:
    """A target as an engine's row keeps it."""
    return BuildTarget(
        name=str(entry["rig"]),
        via=str(entry["via"]),
        cuda_arch=entry.get("cuda_arch"),
        options=tuple(entry.get("options") or ()),
        pins=tuple((name, str(entry[name])) for name in PINS if entry.get(name)),
    )


def target_for(engine: EngineRow, rig: str) -> BuildTarget:
    """The watch list's word, else the family's own way."""
    for entry in engine.targets:
        if entry.get("rig") == rig:
            return build_target(entry)
    return BuildTarget(name=rig, via=FAMILIES[engine.family].VIA)
