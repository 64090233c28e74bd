"""Dated "does not work": when one is born, what it depended on, what moves it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from jobs.model import Blame, Kind, State, Validity
from jobs.planner import digest
from jobs.terminal import counted

DEFAULT_DAYS = 7.0
"""What was impossible last week may be a push away."""

MOST_DAYS = 28.0
"""However often it failed, once in four weeks it is tried."""

LEAST_DAYS = 1 / 24

ANY_SCENARIO = ""
"""A negative that holds whatever is asked of the server."""

DRAFTER = "drafter"
"""The kind of move that brings a file to try with."""

HINT = "answer"
DOUBT = "doubt"
HINTS = frozenset({HINT, DOUBT})
"""The kinds of move that alone make no retest."""

MACHINE = frozenset({"driver", "memory", "fingerprint", "sandbox", "flags"})
"""The kinds that a sweep reads off the rig and the watch list: true while it still reads them."""

AT_MOST_DAILY = MACHINE | {"issue", "expired"}
"""Only a revision, a drafter and a person ask more often than once in `BETWEEN`."""

BETWEEN = timedelta(hours=24)
"""A machine that wavers may not spend its day on one question."""

OVERTURNED = "negative_overturned"
"""The kind of event that tells of it."""


class NegativeState(StrEnum):
    """Where a negative stands; only the first keeps planning from asking again."""

    STANDING = "standing"
    FOLLOWED = "followed"
    OVERTURNED = "overturned"
    FORGOTTEN = "forgotten"
    DOUBTED = "doubted"


_OURS = frozenset(
    {
        "refused",
        "not_approved",
        "not_trusted",
        "artifact_missing",
        "artifact_damaged",
        "weights_absent",
        "weights_package",
        "weights_sha256",
    }
)
"""Classes that tell of our stores and settings, whoever is blamed; not of the stack."""

TELLING = frozenset(
    {
        Validity.UNSTABLE,
        Validity.SPEC_INACTIVE,
        Validity.DEGRADED,
        Validity.BROKEN_OUTPUT,
        Validity.PARTIAL_OFFLOAD,
        Validity.CONFIG_MISMATCH,
        Validity.TOO_SHORT,
        Validity.EMPTY,
    }
)
"""The others tell of the machine, of a cache, or of our own measuring."""

DOES_NOT_FIT = "does_not_fit"


def failed_as_negative(kind: Kind, state: State, blame: Blame | None, failure_class: str) -> bool:
    """Whether a job that ended so says something that has to be tried again some day."""
    return (
        kind in (Kind.BENCH, Kind.BUILD)
        and state is State.FAILED
        and blame in (Blame.ENGINE, Blame.CONFIGURATION)
        and failure_class not in _OURS
    )


def measured_as_negative(validity: Validity) -> bool:
    """Whether a result of that validity says that the stack does not work."""
    return validity in TELLING


def measures_enough(then: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether a success was asked with at least the boots and runs of what it contradicts."""
    return all(int(found.get(name) or 0) >= int(then.get(name) or 0) for name in ("boots", "runs"))


def is_about_memory(failure_class: str) -> bool:
    """Whether the pre-flight has an opinion on a class."""
    return failure_class == DOES_NOT_FIT or "oom" in failure_class.split("_")


@dataclass(frozen=True)
class Question:
    """What was asked, without anything that may move: no revision, no drafter's digest, no flags.

    A build asks with an engine and a rig alone. How a drafter drafts moves with the drafter.
    """

    kind: Kind
    engine: str
    rig: str
    scenario: str = ANY_SCENARIO
    target_sha256: str = ""
    projector_sha256: str = ""
    drafted: bool = False
    context_tokens: int = 0
    intent: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """One digest per question."""
        dropped = {"context", "speculation"} if self.drafted else {"context"}
        intent = {name: value for name, value in self.intent.items() if name not in dropped}
        return digest(
            "negative",
            self.kind.value,
            self.engine,
            self.rig,
            self.scenario,
            self.target_sha256,
            self.projector_sha256,
            self.drafted,
            self.context_tokens,
            intent,
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """Its own, and that of the same in any scenario."""
        wide = replace(self, scenario=ANY_SCENARIO)
        return tuple(dict.fromkeys((self.key, wide.key)))


def bench_question(payload: Mapping[str, Any], *, engine: str, target_sha256: str) -> Question:
    """What a bench of that payload asks; digests of what is loaded beside are in it."""
    return Question(
        Kind.BENCH,
        engine,
        str(payload.get("rig", "")),
        scenario=str(payload.get("scenario", "")),
        target_sha256=target_sha256,
        projector_sha256=str(payload.get("projector_sha256") or ""),
        drafted=bool(payload.get("drafter_sha256")),
        context_tokens=int(payload.get("context_tokens") or 0),
        intent=dict(payload.get("intent") or {}),
    )


@dataclass(frozen=True)
class Grounds:
    """Exactly what an answer depended on; empty or None where it was not known.

    `order` and `revision_id` tell an older revision of the engine from a newer one.
    """

    commit: str = ""
    label: str = ""
    order: str = ""
    revision_id: int = 0
    target: str = ""
    target_sha256: str = ""
    drafter: str = ""
    drafter_sha256: str = ""
    projector: str = ""
    projector_sha256: str = ""
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    driver: str = ""
    vram_bytes: int | None = None
    fingerprint: str = ""
    sandbox: str = ""
    issues: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[str, int]:
        """Where its revision stands among those of the engine."""
        return (self.order, self.revision_id)


@dataclass(frozen=True)
class Move:
    """Something that a negative depended on moved; the same key counts once."""

    key: str
    kind: str
    says: str


@dataclass(frozen=True)
class Past:
    """What an earlier negative of the same question said, and for how long."""

    failure_class: str
    days: float


def days_for(previous: Past | None, failure_class: str, *, default: float) -> float:
    """How long a new negative stands: twice as long where the same class came again."""
    if previous is None or previous.failure_class != failure_class:
        return default
    return min(max(MOST_DAYS, default), previous.days * 2)


def tells_more(found: Grounds, standing: Grounds | None) -> bool:
    """Whether an answer counts beside a standing negative: an older revision tells nothing new."""
    if standing is None or not standing.commit or not found.commit:
        return True
    return found.place >= standing.place


def expired(expires_at: datetime, days: float, now: datetime) -> Move | None:
    """The date has passed; once a day, so that a retest that was lost is asked for again."""
    if expires_at > now:
        return None
    says = f"expired after {counted_days(days)}"
    return Move(f"expired:{now:%Y-%m-%d}", "expired", says)


def advanced(engine: str, then: Grounds, now: Grounds, *, commits: int | None = None) -> Move:
    """The engine has another revision than the one that failed."""
    how = f"moved {counted(commits, 'commit')} to" if commits else "moved to"
    was = f", it was {then.label}" if then.label else ""
    says = f"{engine} {how} {now.label or now.commit[:9]}{was}"
    return Move(f"revision:{now.revision_id}", "revision", says)


def drafter_appeared(name: str, sha256: str) -> Move:
    """There is another drafter for the same target."""
    return Move(f"{DRAFTER}:{sha256}", DRAFTER, f"drafter {name} appeared")


def issue_moved(title: str, event_id: int) -> Move:
    """A linked issue was closed."""
    return Move(f"event:{event_id}", "issue", title)


def issue_answered(title: str, event_id: int) -> Move:
    """Somebody wrote below a linked issue: worth telling with the next retest, not worth one."""
    return Move(f"event:{event_id}", HINT, title)


def measured_less(job_id: int, then: Mapping[str, Any], found: Mapping[str, Any]) -> Move:
    """It worked once, measured with less than it takes to say so."""
    said = [
        f"{counted(int(each.get('boots') or 0), 'boot')} of "
        f"{counted(int(each.get('runs') or 0), 'run')}"
        for each in (found, then)
    ]
    says = f"job {job_id} worked in {said[0]}: it takes {said[1]}"
    return Move(f"job:{job_id}", HINT, says)


def success_doubted(job_id: int, why: str) -> Move:
    """What overturned it can no longer be believed."""
    return Move(f"{DOUBT}:{job_id}", DOUBT, f"job {job_id}, which worked, is doubted: {why}")


def doubted(says: str) -> Move:
    """The pre-flight says that it fits."""
    return Move("pre-flight", "pre-flight", f"the pre-flight disagrees: {says}")


def asked_by_hand(now: datetime) -> Move:
    """A person wants to know now."""
    return Move(f"hand:{now.isoformat()}", "hand", "asked for by hand")


def changed(then: Grounds, now: Grounds, *, failed: Sequence[Grounds] = ()) -> Iterator[Move]:
    """What is different on the rig and in the watch list; what was not known did not move.

    What stood in an earlier answer of the question, one of `failed`, is no news.
    """
    known = (then, *failed)
    if then.driver and now.driver and now.driver not in {each.driver for each in known}:
        says = f"the driver went from {then.driver} to {now.driver}"
        yield Move(f"driver:{now.driver}", "driver", says)
    largest = max(each.vram_bytes or 0 for each in known)
    if then.vram_bytes and now.vram_bytes and now.vram_bytes > largest:
        says = f"{_gib(now.vram_bytes)} of memory, it was {_gib(then.vram_bytes)}"
        yield Move(f"memory:{now.vram_bytes}", "memory", says)
    rigs = {each.fingerprint for each in known}
    if then.fingerprint and now.fingerprint and now.fingerprint not in rigs:
        says = f"the rig is another: {now.fingerprint[:9]}, it was {then.fingerprint[:9]}"
        yield Move(f"fingerprint:{now.fingerprint}", "fingerprint", says)
    if then.sandbox and now.sandbox and now.sandbox not in {each.sandbox for each in known}:
        says = f"the sandbox is {now.sandbox}, it was {then.sandbox}"
        yield Move(f"sandbox:{now.sandbox}", "sandbox", says)
    if all((each.flags, dict(each.env)) != (now.flags, dict(now.env)) for each in known):
        key = digest(list(now.flags), dict(now.env))[:16]
        yield Move(f"flags:{key}", "flags", f"the watch list asks for other flags: {_said(now)}")


def _said(now: Grounds) -> str:
    words = [*(f"{name}={value}" for name, value in sorted(now.env.items())), *now.flags]
    return " ".join(words)[:200] or "none"


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"


def counted_days(days: float) -> str:
    """`7 days`, `1 day`, `1.5 days`."""
    return "1 day" if days == 1 else f"{days:.3g} days"


def span(length: timedelta) -> str:
    """How long something lasted, in its two largest units: `3 days 4 h`, `2 h 5 min`."""
    minutes = max(0, int(length.total_seconds() // 60))
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return counted(days, "day") + (f" {hours} h" if hours else "")
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def left(expires_at: datetime, now: datetime) -> str:
    """What is left of a negative's time."""
    return f"{span(expires_at - now)} left" if expires_at > now else "its date has passed"
