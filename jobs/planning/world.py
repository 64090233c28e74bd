"""What planning knows when it decides: engines, stacks, files, rigs, budgets, history; values only.

Who loads it from rows is `jobs.store.worlds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobs.estimates import Past
from jobs.fit.setup import Card
from jobs.fit.shape import Shape
from jobs.known_engines import EngineState
from jobs.model import BuildTarget, Revision, Trust
from jobs.planner import Weights
from jobs.planning.rules import Rule
from jobs.scenarios import SHIPPED, Scenario, rung_of

Place = tuple[str, str, str]
"""Rig, stack and scenario of a bench."""


@dataclass(frozen=True)
class KnownRevision:
    """A revision, the number of its row, and what was read of the engine at that state.

    `replaced`: a newer head took its place before anybody measured it.
    """

    id: int
    value: Revision
    state: EngineState
    replaced: bool = False


@dataclass(frozen=True)
class KnownFile:
    """A model file; `repo` is where on the hub it lies, `fault` why it has no shape."""

    weights: Weights
    role: str
    model_class: str
    repo: str = ""
    shape: Shape | None = None
    fault: str = ""


@dataclass(frozen=True)
class KnownStack:
    """What a watch list asks to be benched; a file that is not known is None."""

    name: str
    engine: str
    target: KnownFile | None
    drafter: KnownFile | None = None
    projector: KnownFile | None = None
    context_tokens: int = 2048
    intent: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    scenarios: tuple[str, ...] = ()
    own_scenarios: Mapping[str, Scenario] = field(default_factory=dict)
    wants_drafter: bool = False
    wants_projector: bool = False

    def scenario(self, name: str) -> Scenario | None:
        """One of its own or a shipped one, or a rung of a ladder; None where there is none."""
        return rung_of(name, SHIPPED | dict(self.own_scenarios))

    @property
    def missing(self) -> str:
        """Which of its files is not known, or nothing."""
        for word, wanted, found in (
            ("target", True, self.target),
            ("drafter", self.wants_drafter, self.drafter),
            ("mmproj", self.wants_projector, self.projector),
        ):
            if wanted and found is None:
                return word
        return ""


@dataclass(frozen=True)
class KnownEngine:
    """An engine, what it is built for, and its newest revision."""

    name: str
    family: str
    trust: Trust
    targets: tuple[BuildTarget, ...]
    retired: bool = False
    drivable: bool = True
    newest: KnownRevision | None = None


@dataclass(frozen=True)
class Event:
    """An event as planning sees it.

    `revision` is what it is about, `parent` what a first measurement would be compared with.
    `published` is the model file it tells of, `linked` the note of a linked issue, None where
    nobody linked it. Where it is not `newest`, something later took its place.
    """

    id: int
    kind: str
    title: str
    engine: str = ""
    revision: KnownRevision | None = None
    parent: KnownRevision | None = None
    published: KnownFile | None = None
    linked: str | None = None
    low_priority: bool = False
    newest: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SeriesPast:
    """What was measured on a series: `ok` results of all revisions.

    `best_tps` is the record of its group: same model class, rig, scenario and context.
    """

    revisions: frozenset[int] = frozenset()
    last_tps: float | None = None
    best_tps: float | None = None
    last_at: datetime | None = None


@dataclass(frozen=True)
class Budget:
    """Seconds a day for one rig, or for one source on all rigs, and how many are spoken for."""

    seconds: float
    spent: float = 0.0
    rig: str = ""
    source: str = ""

    @property
    def name(self) -> str:
        """How people call it."""
        return f"rig {self.rig}" if self.rig else f"source {self.source}"

    @property
    def left(self) -> float:
        """What may still be planned today."""
        return max(0.0, self.seconds - self.spent)

    def covers(self, *, rig: str, source: str) -> bool:
        """Whether a bench on that rig for that source draws on it."""
        return rig == self.rig if self.rig else source == self.source


@dataclass(frozen=True)
class World:
    """All of it at one moment.

    `tried` are identities of jobs that ended, `waiting` of those under way, `negatives` of benches
    that stand as not working, `questions` are theirs without what may move, `retests` those that
    this event asks again; `failed` says why the last job of an identity failed for good.
    `given_up` are benches that waited for the head which this event replaces, as `Place`s: what
    takes their place is spoken for in every budget already.
    `past` holds the newest jobs of a queue that succeeded, `failures` is by rig and stack.
    """

    now: datetime
    engines: Mapping[str, KnownEngine] = field(default_factory=dict)
    stacks: tuple[KnownStack, ...] = ()
    files: tuple[KnownFile, ...] = ()
    cards: Mapping[str, Card] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    budgets: tuple[Budget, ...] = ()
    tried: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    negatives: frozenset[str] = frozenset()
    retests: frozenset[str] = frozenset()
    given_up: frozenset[Place] = frozenset()
    questions: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict)
    series: Mapping[str, SeriesPast] = field(default_factory=dict)
    past: Mapping[str, Sequence[Past]] = field(default_factory=dict)
    failures: Mapping[tuple[str, str], int] = field(default_factory=dict)
