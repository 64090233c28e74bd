"""What a bench is to do and where; values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jobs.engines.base import Engine
from jobs.model import Flags
from jobs.scenarios import Scenario
from workers.sandbox import Limits, Mount, Sandbox


@dataclass(frozen=True)
class Plan:
    """Everything that stays the same from boot to boot of one bench."""

    engine: Engine
    scenario: Scenario
    flags: Flags
    artifact: Mount
    model: Mount
    context_tokens: int
    threads: int
    runs: int
    boots: int = 1
    launcher: Mount | None = None
    mounts: tuple[Mount, ...] = ()
    gpu_layers: int = 0
    intent: Mapping[str, str | int] = field(default_factory=dict)
    extra_flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where boots happen: the sandbox, its limits, and folders of the worker."""

    sandbox: Sandbox
    limits: Limits
    runtime: Path
    log: Path
    marker: str
