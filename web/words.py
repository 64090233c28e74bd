"""What the words on our pages mean, and how a stored figure is said; pure, no markup."""

from __future__ import annotations

from datetime import datetime

from jobs.model import Blame, State, Validity, VerdictKind
from jobs.store.shown_forks import ShownDistance, Standing
from jobs.terminal import counted

VALIDITY = {
    Validity.OK: "Nothing speaks against the number.",
    Validity.CACHED: "The prompt came from a cache, so its speed says nothing.",
    Validity.PARTIAL_OFFLOAD: "Part of the model ran somewhere else than on the device.",
    Validity.SPEC_INACTIVE: "Speculation was asked for and did not run.",
    Validity.DEGRADED: "The engine took a slower path of its own than the one it was asked for.",
    Validity.TAINTED: "Something else used the machine while it was measured.",
    Validity.UNSTABLE: "The runs drift or jump too far to name one speed.",
    Validity.WRONG_SERVER: "Another server than the one we started answered.",
    Validity.BROKEN_OUTPUT: "The text is garbage, so its speed is worth nothing.",
    Validity.TOO_SHORT: "Fewer tokens came than were asked for.",
    Validity.CONFIG_MISMATCH: "The server ran with other settings than it was asked for.",
    Validity.INCONSISTENT: "The server's own figures contradict each other.",
    Validity.EMPTY: "No token came.",
    Validity.DOUBTFUL: "Its rig failed its health job later, and may not have been well then.",
    Validity.TWIN: "Random weights of a real shape: memory and speed, never a rank.",
}

VERDICT = {
    VerdictKind.FIRST: "the first result of its series: there is nothing to compare with",
    VerdictKind.SAME: "no change larger than the resolution that is named",
    VerdictKind.CANNOT_TELL: "the boots differ so much among themselves that no answer is honest",
    VerdictKind.SUSPECT_FASTER: "faster beyond the noise; a second measurement must confirm it",
    VerdictKind.SUSPECT_SLOWER: "slower beyond the noise; a second measurement must confirm it",
    VerdictKind.UNSTABLE: "the runs drift or jump inside the boots",
    VerdictKind.INVALID: "too little of what was measured counts",
}

STATE = {
    State.QUEUED: "waits for its turn",
    State.BLOCKED: "cannot start until something changes",
    State.LEASED: "a worker has taken it",
    State.RUNNING: "is being worked on",
    State.SUCCEEDED: "done",
    State.FAILED: "ended with a named failure",
    State.CANCELLED: "stopped by a person",
    State.EXPIRED: "waited longer than it was worth",
    State.SUPERSEDED: "a newer job took its place",
    State.DEAD: "lost its worker too often; a person must look",
}

BLAME = {
    Blame.ENGINE: "a fault of the engine; the only kind that counts against it",
    Blame.CONFIGURATION: "the engine cannot do what was asked of it",
    Blame.INFRASTRUCTURE: "our machine, network or disk failed",
    Blame.ENVIRONMENT: "the machine lacks or changed something",
}

BLOCKED = {
    "not_approved": "It waits until a person approves this exact commit: "
    "`forkscout approvals` tells which.",
    "no_sandbox": "No working sandbox here, and strangers' code runs in nothing less. "
    "Install it with: apt install bubblewrap",
}


TIER = {
    0: "watched as an engine",
    1: "watched closely",
    2: "a candidate",
    3: "known by name",
}

ABILITY = {
    "flags": "flags",
    "ggml_types": "tensor types",
    "cache_types": "cache types",
    "spec_types": "kinds of speculation",
    "archs": "architectures",
}


def spoken(word: str) -> str:
    """A stored word as people read it: `cannot_tell` becomes `cannot tell`."""
    return word.replace("_", " ")


def blocked(reason: str | None) -> str:
    """Why a job is blocked and what would free it."""
    if not reason:
        return "blocked, and no reason was recorded"
    return BLOCKED.get(reason, spoken(reason))


def distance(found: ShownDistance | None) -> str:
    """Ahead and behind as short as a picture needs it."""
    if found is None:
        return "not measured yet"
    if found.merge_base is None:
        return "nothing in common"
    return f"+{found.ahead} \N{MINUS SIGN}{found.behind}"


def apart(found: ShownDistance | None, of: str) -> str:
    """Ahead and behind in a sentence."""
    if found is None:
        return f"not measured against {of} yet"
    if found.merge_base is None:
        return f"no commit in common with {of}"
    return f"{counted(found.ahead or 0, 'commit')} ahead of {of} and {found.behind} behind"


def own_patches(found: Standing) -> str:
    """How many patches are its own, and whose."""
    patches = counted(found.own_patches, "own patch", "own patches")
    return f"{patches} by {counted(found.own_authors, 'author')}"


def staleness(found: Standing, *, now: datetime) -> str:
    """How old the upstream is that a fork stands on, and what it lacks of today's."""
    away = found.from_upstream
    if away is None:
        return "It is the upstream of its chain: forks of it are measured against it."
    if away.merge_base is None or found.last_sync is None:
        return "It has no commit in common with its upstream."
    if away.behind == 0:
        return "It has everything that upstream had at the last look."
    lacks = counted(away.behind or 0, "commit")
    days = max((now - found.last_sync.upstream_at).days, 0)
    return (
        f"It stands on upstream of {found.last_sync.upstream_at:%Y-%m-%d}, "
        f"{counted(days, 'day')} old, and lacks {lacks} of upstream."
    )


def age(moment: datetime, *, now: datetime) -> str:
    """How long ago, in days; what lies ahead of our clock is today."""
    days = max((now - moment).days, 0)
    return f"{counted(days, 'day')} ago" if days else "today"


def sentence(said: str, advice: str = "") -> str:
    """What happened and what to do as one text: a capital first, a stop last."""
    joint = ". " if advice[:1].isupper() else "; "
    whole = f"{said}{joint}{advice}" if advice else said
    return f"{whole[:1].upper()}{whole[1:].rstrip('.')}{'' if whole.endswith('?') else '.'}"
