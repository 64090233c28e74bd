"""The frozen values we decide on; they hold facts and refuse to act."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any

RIG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", re.ASCII)
"""A rig's name; it stands in queue names, file names and addresses."""


class Kind(StrEnum):
    """What a job does."""

    FETCH_MODEL = "fetch_model"
    BUILD = "build"
    BENCH = "bench"
    CONFIRM = "confirm"
    SMOKE = "smoke"
    BISECT = "bisect"
    PUBLISH = "publish"


class State(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    BLOCKED = "blocked"
    LEASED = "leased"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    DEAD = "dead"


class Lane(IntEnum):
    """Who goes first; a smaller number is served earlier.

    Health holds smoke jobs, and what they need: a quarantined rig serves this lane alone.
    """

    HEALTH = 5
    ON_DEMAND = 10
    CONFIRM = 20
    FRESH = 30
    RETEST = 40
    BACKFILL = 50

    @property
    def word(self) -> str:
        """As people read it."""
        return self.name.lower().replace("_", " ")


class RigState(StrEnum):
    """How far a rig's numbers can be believed; a quarantined one runs health jobs alone."""

    UNPROVEN = "unproven"
    TRUSTED = "trusted"
    QUARANTINED = "quarantined"


class Blame(StrEnum):
    """Four outcomes that never mix; only the first counts against an engine."""

    ENGINE = "engine"
    CONFIGURATION = "configuration"
    INFRASTRUCTURE = "infrastructure"
    ENVIRONMENT = "environment"


class Trust(StrEnum):
    """How far an engine's code may go without a person."""

    AUTO = "auto"
    APPROVE = "approve"
    PACKAGE = "package"
    NEVER = "never"


class Validity(StrEnum):
    """What a number is worth; only OK feeds a verdict."""

    OK = "ok"
    CACHED = "cached"
    PARTIAL_OFFLOAD = "partial_offload"
    SPEC_INACTIVE = "spec_inactive"
    DEGRADED = "degraded"
    TAINTED = "tainted"
    UNSTABLE = "unstable"
    WRONG_SERVER = "wrong_server"
    BROKEN_OUTPUT = "broken_output"
    TOO_SHORT = "too_short"
    CONFIG_MISMATCH = "config_mismatch"
    INCONSISTENT = "inconsistent"
    EMPTY = "empty"
    DOUBTFUL = "doubtful"
    TWIN = "twin"


@dataclass(frozen=True)
class Revision:
    """One exact state of an engine's source: a full commit sha, or the sha256 of a wheel."""

    engine: str
    family: str
    commit: str
    label: str
    source: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", self.commit):
            raise ValueError(f"a revision is a full sha, not {self.commit!r}")


@dataclass(frozen=True)
class BuildTarget:
    """What a build is for: the way it is made and the hardware it must run on.

    `pins` are what a way is told beside that, by name: a release file with its tag and sha256, a
    version of CUDA, an image by its digest.
    """

    name: str
    via: str
    cuda_arch: str | None = None
    options: tuple[str, ...] = ()
    pins: tuple[tuple[str, str], ...] = ()

    def pin(self, name: str) -> str:
        """What is pinned under that name; empty where nothing is."""
        return dict(self.pins).get(name, "")


@dataclass(frozen=True)
class Step:
    """One process to start, described by a recipe and started by the sandbox alone."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout_seconds: float = 3600.0
    silence_seconds: float = 900.0


@dataclass(frozen=True)
class FailureRule:
    """A pattern in a log that names what went wrong, where, whose fault it is and what to do.

    It counts in its phases, in all where it names none. A `general` one yields to every other.
    """

    name: str
    pattern: re.Pattern[str]
    blame: Blame
    advice: str
    phases: frozenset[str] = frozenset()
    general: bool = False

    def counts_in(self, phase: str) -> bool:
        """Whether it says something of that phase; an unknown phase (empty) may be any."""
        return not phase or not self.phases or phase in self.phases


@dataclass(frozen=True)
class Flags:
    """What one built binary understands: spellings, values, removed spellings, log levels."""

    names: frozenset[str]
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    log_levels: Mapping[str, str] = field(default_factory=dict)

    def first_of(self, *spellings: str) -> str | None:
        """The first spelling this binary accepts, or None."""
        return next((s for s in spellings if s in self.names and s not in self.removed), None)


@dataclass(frozen=True)
class BootFacts:
    """What a server's log says about one start; None is "not said", never zero."""

    offloaded_layers: int | None = None
    total_layers: int | None = None
    kv_mib: float | None = None
    graph_splits: int | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class MemoryLines:
    """Bytes of one model as its server logged them; each None where no line says it."""

    weights: int | None = None
    cache: int | None = None
    recurrent: int | None = None
    compute: int | None = None
    pinned: int | None = None


@dataclass(frozen=True)
class BootMemory:
    """What one boot's log says of its models; `projector` is its compute buffer.

    `process` is what the driver says the server held on the cards once it was ready.
    """

    target: MemoryLines
    drafter: MemoryLines | None = None
    projector: int | None = None
    process: int | None = None


SILENT = BootMemory(MemoryLines())
"""A boot whose log says nothing of memory."""


@dataclass(frozen=True)
class Layout:
    """What one boot was asked for, as far as it decides how much memory is taken."""

    context_tokens: int
    batch: int
    ubatch: int
    cache_key: str
    cache_value: str
    slots: int = 1
    gpu_layers: int = 0


@dataclass(frozen=True)
class Effective:
    """Settings read back from a running server; `context_tokens` is per slot."""

    context_tokens: int | None = None
    slots: int | None = None
    speculative: bool | None = None
    alias: str | None = None
    model_path: str | None = None
    build_info: str | None = None


@dataclass(frozen=True)
class Request:
    """One HTTP request of a run: path and JSON body."""

    path: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Arrival:
    """One stream event's JSON and when it came, in seconds after the request was sent."""

    seconds: float
    event: Mapping[str, Any]


@dataclass(frozen=True)
class Measurement:
    """One measured request. Times in milliseconds, rates in tokens per second.

    Inter-token times lie between events with text, each of one token or of several that came at
    once. `sanity` is 1 for text without a run of repetition and near 0 for nothing but one.
    `source` says whose figures these are: `timings` are the server's, `wall` is our own clock.
    `after` is what machine and card said right after it: memory in bytes, clocks, power.
    """

    run: int
    warmup: bool
    validity: Validity
    reason: str = ""
    predicted_n: int | None = None
    predicted_ms: float | None = None
    prompt_n: int | None = None
    prompt_ms: float | None = None
    cache_n: int | None = None
    decode_tps: float | None = None
    prefill_tps: float | None = None
    wall_tps: float | None = None
    arrival_tps: float | None = None
    ttft_ms: float | None = None
    ttft_content_ms: float | None = None
    inter_token_p50_ms: float | None = None
    inter_token_p99_ms: float | None = None
    draft_n: int | None = None
    draft_accepted_n: int | None = None
    finish_reason: str | None = None
    model_echo: str | None = None
    text_sha256: str | None = None
    text_head: str = ""
    sanity: float | None = None
    source: str = "timings"
    timings: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    scenario: str = ""


@dataclass(frozen=True)
class Boot:
    """One start of a server and the requests it answered, in order."""

    number: int
    load_seconds: float
    facts: BootFacts
    effective: Effective
    props: Mapping[str, Any]
    slots: Sequence[Mapping[str, Any]]
    measurements: tuple[Measurement, ...]
    peak_memory_bytes: int | None = None
    listener_is_child: bool = False
    environment: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    started_at: datetime | None = None
    layout: Layout | None = None
    memory: BootMemory | None = None


class VerdictKind(StrEnum):
    """What a set of boots means against its series."""

    FIRST = "first"
    SAME = "same"
    CANNOT_TELL = "cannot_tell"
    SUSPECT_FASTER = "suspect_faster"
    SUSPECT_SLOWER = "suspect_slower"
    UNSTABLE = "unstable"
    INVALID = "invalid"


@dataclass(frozen=True)
class Verdict:
    """A judgement; effects and the resolution are fractions (0.05 is 5 %)."""

    kind: VerdictKind
    sentence: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    resolution: float | None = None
    boots: int = 0
    runs: int = 0
