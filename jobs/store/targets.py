"""What has to be built of an engine for a rig; reads a row, queues nothing."""

from __future__ import annotations

from jobs.engines.registry import FAMILIES
from jobs.model import BuildTarget
from jobs.tables import EngineRow


def target_for(engine: EngineRow, rig: str) -> BuildTarget:
    """The watch list's word, else the family's own way."""
    for entry in engine.targets:
        if entry.get("rig") == rig:
            return BuildTarget(
                name=rig,
                via=str(entry["via"]),
                cuda_arch=entry.get("cuda_arch"),
                options=tuple(entry.get("options") or ()),
            )
    return BuildTarget(name=rig, via=FAMILIES[engine.family].VIA)
