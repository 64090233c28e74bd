"""The frozen values that pages show; rows end here, and nothing here knows markup or a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any

from jobs.model import Measurement, Validity, Verdict
from jobs.scenarios import AT, depth_of
from jobs.store.source_health import Outlook


@dataclass(frozen=True, order=True)
class Group:
    """What must be equal before two results may be ranked against each other."""

    model_class: str
    rig: str
    context_tokens: int
    scenario: str

    @property
    def filled_tokens(self) -> int:
        """How deep the context is really filled; 0 where that is not fixed."""
        return depth_of(self.scenario)

    @property
    def order(self) -> tuple[Any, ...]:
        """By name, and the rungs of a ladder by depth."""
        name = self.scenario.partition(AT)[0]
        return (self.model_class, self.rig, self.context_tokens, name, self.filled_tokens)


@dataclass(frozen=True)
class Entry:
    """One result as a line of the leaderboard; `runs` holds the counted t/s, boot by boot."""

    result_id: int
    job_id: int
    group: Group
    series: str
    stack: str
    engine: str
    family: str
    label: str
    commit: str
    model_file: str
    quantisation: str
    decode_tps: float | None
    prefill_tps: float | None
    ttft_ms: float | None
    load_seconds: float | None
    peak_memory_bytes: int | None
    boots_used: int
    runs_used: int
    validity: Validity
    validity_reason: str
    sandbox: str
    measured_at: datetime
    runs: tuple[tuple[float, ...], ...] = ()
    draft_n: int | None = None
    draft_accepted_n: int | None = None
    verdict: Verdict | None = None

    @property
    def short_commit(self) -> str:
        return self.commit[:10]

    @property
    def boot_medians(self) -> tuple[float, ...]:
        """The middle of each boot that has a counted run."""
        return tuple(median(boot) for boot in self.runs if boot)

    @property
    def spread(self) -> tuple[float, float] | None:
        """The slowest and the fastest boot; None where no run counted."""
        medians = self.boot_medians
        return (min(medians), max(medians)) if medians else None

    @property
    def acceptance(self) -> float | None:
        """Accepted share of the drafted tokens; None where nothing was drafted, not zero."""
        if not self.draft_n or self.draft_accepted_n is None:
            return None
        return self.draft_accepted_n / self.draft_n

    @property
    def uncaged(self) -> bool:
        return self.sandbox == "uncaged"


@dataclass(frozen=True)
class ShownBoot:
    """One start of a server with what it admitted to and every request it answered."""

    number: int
    started_at: datetime
    load_seconds: float
    listener_is_child: bool
    peak_memory_bytes: int | None
    facts: Mapping[str, Any]
    effective: Mapping[str, Any]
    props: Mapping[str, Any]
    slots: Sequence[Any]
    environment: Mapping[str, Any]
    samples: tuple[Measurement, ...]


@dataclass(frozen=True)
class ShownVerdict:
    """A judgement with the result it was made against."""

    verdict: Verdict
    baseline_id: int | None
    judged_at: datetime


@dataclass(frozen=True)
class ShownBuild:
    """An artifact and where it came from."""

    job_id: int
    artifact: str
    identity: str
    recipe: str
    target: str
    sandbox: str
    size_bytes: int
    duration_seconds: float
    provenance: Mapping[str, Any]
    id: int | None = None


@dataclass(frozen=True)
class ResultDetail:
    """Everything that is stored about one result.

    Of one that was measured in turns `arm` is its side, `beside_id` the result of the other one.
    """

    entry: Entry
    boots: tuple[ShownBoot, ...]
    verdicts: tuple[ShownVerdict, ...]
    build: ShownBuild
    model_sha256: str
    model_source: Mapping[str, Any]
    model_size_bytes: int | None
    rig_device: str
    rig_fingerprint: str
    rig_facts: Mapping[str, Any]
    asked: Mapping[str, Any]
    command: Mapping[str, Any]
    environment: Mapping[str, Any]
    arm: str = ""
    beside_id: int | None = None


@dataclass(frozen=True)
class ShownJob:
    """A job as the queue tells it; `waits_for` names the jobs that must succeed first."""

    id: int
    kind: str
    queue: str
    state: str
    lane: int
    title: str
    reason: str
    source: str
    cause: Mapping[str, Any]
    estimate_seconds: float | None
    created_at: datetime
    due_at: datetime
    turn_at: datetime
    expires_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    blocked_by: str | None
    attempts: int
    leased_by: str | None
    beat_at: datetime | None
    cancel_requested: bool
    failure_class: str | None
    blame: str | None
    message: str
    advice: str
    progress: Mapping[str, Any]
    identity: str
    waits_for: tuple[int, ...] = ()
    result_id: int | None = None
    position: int | None = None
    put_off: bool = False
    likely_start_at: datetime | None = None
    likely_end_at: datetime | None = None
    expected: str = "not known"


@dataclass(frozen=True)
class ShownWorker:
    """A worker process and when it last spoke."""

    name: str
    queue: str
    sandbox: str
    draining: bool
    beat_at: datetime


@dataclass(frozen=True)
class ShownPause:
    """A queue of which nothing is leased until somebody resumes it, or until a moment."""

    queue: str
    reason: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True)
class ShownQuarantine:
    """A rig that runs health jobs alone; what else waits for it keeps its place."""

    rig: str
    why: str
    since: datetime


@dataclass(frozen=True)
class Queue:
    """Live jobs in serving order, and what ended lately; a long line shows only its head."""

    running: tuple[ShownJob, ...]
    waiting: tuple[ShownJob, ...]
    waiting_total: int
    blocked: tuple[ShownJob, ...]
    ended: tuple[ShownJob, ...]
    workers: tuple[ShownWorker, ...]
    pauses: tuple[ShownPause, ...] = ()
    quarantines: tuple[ShownQuarantine, ...] = ()
    blocked_total: int = 0
    outlook: Outlook = field(default_factory=Outlook)


@dataclass(frozen=True)
class ShownEvent:
    """A sighting worth acting on; `fork_id` leads to the page of its repository.

    `details` are the names it brought, or the subjects of its patches, a bounded number of them.
    """

    kind: str
    title: str
    engine: str | None
    seen_at: datetime
    fork_id: int | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownRevision:
    """One exact state of an engine and what was done with it."""

    commit: str
    label: str
    committed_at: datetime | None
    first_seen_at: datetime
    builds: int
    newest_result_id: int | None

    @property
    def short_commit(self) -> str:
        return self.commit[:10]


@dataclass(frozen=True)
class ShownEngine:
    """An engine we watch, its newest revisions first."""

    name: str
    family: str
    repo: str | None
    package: str | None
    parent: str | None
    trust: str
    branches: tuple[str, ...]
    retired: bool
    revisions: tuple[ShownRevision, ...]
    fork_id: int | None = None


@dataclass(frozen=True)
class Front:
    """What the front page tells besides the leaderboard."""

    events: tuple[ShownEvent, ...]
    results: tuple[Entry, ...]
    failures: tuple[ShownJob, ...]
    engines: int
    revisions: int
    builds: int
    results_total: int
