"""What a bench is to do and where, and which of our own files it needs; it starts nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.engines.base import DRAFT, NOTHING, Engine
from jobs.model import Flags
from jobs.scenarios import Scenario
from workers.gpu import Card
from workers.sandbox import Limits, Mount, Sandbox

if TYPE_CHECKING:
    from workers.card_memory import CardMemory

ARMS = ("A", "B")
"""The candidate and its baseline, where two builds are booted in turns."""

MOST_WARM_UPS = 4
"""After so many requests an engine that is not steady never will be; the runs will show it."""

LAUNCHER_FOLDER = "/run/launcher"
ALWAYS_MOUNTED = "/usr"


@dataclass(frozen=True)
class Plan:
    """Everything that stays the same from boot to boot of one bench.

    A boot is warmed up until an answer comes at a steady pace, at most `most_warm_ups` times.
    `arm` is `A` or `B` where two builds are booted in turns.
    """

    engine: Engine
    scenario: Scenario
    flags: Flags
    artifact: Mount
    model: Mount
    context_tokens: int
    threads: int
    runs: int
    boots: int = 1
    arm: str = ""
    launcher: Mount | None = None
    mounts: tuple[Mount, ...] = ()
    drafter: Mount | None = None
    projector: Mount | None = None
    more_scenarios: tuple[Scenario, ...] = ()
    is_twin: bool = False
    most_warm_ups: int = 1
    gpu_layers: int = 0
    intent: Mapping[str, str | int] = field(default_factory=dict)
    extra_flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """What each boot measures, in this order."""
        return (self.scenario, *self.more_scenarios)

    @property
    def speculation(self) -> str:
        """How tokens are to be drafted, by intent, by the engine's own words, or plainly."""
        asked = str(self.intent.get("speculation", "none"))
        if asked not in NOTHING:
            return asked
        own = [b for a, b in pairwise(self.extra_flags) if a == "--spec-type" and b not in NOTHING]
        return own[0] if own else DRAFT if self.drafter is not None else ""


@dataclass(frozen=True)
class Place:
    """Where boots happen: the sandbox, its limits, folders of the worker, and its card if any.

    `least_mhz` is the low end of the clocks that this card usually has under load.
    """

    sandbox: Sandbox
    limits: Limits
    runtime: Path
    log: Path
    marker: str
    card: Card | None = None
    card_memory: CardMemory | None = None
    least_mhz: float | None = None


def launcher_of(engine: Engine) -> Mount | None:
    """Our own file that starts this family's server, as a mount, where the family has one."""
    if engine.LAUNCHER is None:
        return None
    path = Path(str(files("jobs.engines").joinpath(engine.LAUNCHER))).absolute()
    return Mount(path, f"{LAUNCHER_FOLDER}/{engine.LAUNCHER}")


def interpreter_mounts(engine: Engine) -> tuple[Mount, ...]:
    """The interpreter that a wheel's environment points back to, where the cage lacks it."""
    prefix = Path(sys.base_prefix)
    if engine.VIA != "wheel" or prefix.is_relative_to(ALWAYS_MOUNTED):
        return ()
    return (Mount(prefix, str(prefix)),)


def weight_mounts(weights: Sequence[Path], role: str = "target") -> tuple[Mount, ...]:
    """How a server sees the weights; it finds the other files of a set by their names."""
    if len(weights) == 1:
        return (Mount(weights[0], f"/weights/{role}.gguf"),)
    folder = "/weights" if role == "target" else f"/weights/{role}"
    return tuple(Mount(path, f"{folder}/{path.name}") for path in weights)
