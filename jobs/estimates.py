"""How long a job will take, by those that were like it, and how that is said; never exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import Any

from jobs.model import Kind

LIKE = {
    Kind.BENCH: ("scenario", "context_tokens", "runs", "boots", "model_file_id", "stack"),
    Kind.CONFIRM: ("scenario", "context_tokens", "runs", "boots", "model_file_id", "stack"),
    Kind.BUILD: ("target", "via"),
    Kind.FETCH_MODEL: ("model_file_id",),
}
"""What of a payload decides how long a job takes; fewer of them must agree where none did all."""

MOST_PAST = 20
"""Of how many past jobs the middle is taken: older ones ran under other circumstances."""


@dataclass(frozen=True)
class Past:
    """A job that succeeded and what it took."""

    kind: str
    payload: Mapping[str, Any]
    seconds: float


def likely_seconds(kind: Kind, payload: Mapping[str, Any], past: Sequence[Past]) -> float | None:
    """The middle of the newest that were most alike; `past` is newest first. None: not known."""
    turns = is_in_turns(payload)
    same = [each for each in past if each.kind == kind and is_in_turns(each.payload) == turns]
    if turns and not same:
        alone = likely_seconds(kind, {**payload, "against": None}, past)
        return None if alone is None else 2 * alone
    names = LIKE.get(kind, ())
    for count in range(len(names), -1, -1):
        agree = names[:count]
        alike = [
            each.seconds
            for each in same
            if all(each.payload.get(name) == payload.get(name) for name in agree)
        ]
        if alike:
            return float(median(alike[:MOST_PAST]))
    return None


def is_in_turns(payload: Mapping[str, Any]) -> bool:
    """Whether a bench boots two builds in turns: then it takes as long as both."""
    return bool(payload.get("against"))


@dataclass(frozen=True)
class Expectation:
    """When a job may start and end, counted from now; None where that is not known.

    `after` says what has to happen before, where that is one thing with a name.
    """

    starts_in: timedelta | None
    ends_in: timedelta | None
    runs: bool = False
    after: str = ""

    def __str__(self) -> str:
        return said(self)


UNKNOWN = Expectation(None, None)


def expectation(
    *, wait_seconds: float | None, own_seconds: float | None, least_wait_seconds: float = 0.0
) -> Expectation:
    """What a wait and a job's own time come to."""
    if wait_seconds is None:
        return UNKNOWN
    start = max(wait_seconds, least_wait_seconds, 0.0)
    end = None if own_seconds is None else timedelta(seconds=start + own_seconds)
    return Expectation(timedelta(seconds=start), end)


def under_way(remaining: float | None) -> Expectation:
    """A running job has started, and ends when the rest of it is done."""
    end = None if remaining is None else timedelta(seconds=remaining)
    return Expectation(None, end, runs=True)


def remaining_seconds(own_seconds: float | None, ran_seconds: float) -> float | None:
    """What is left of a running job; one that takes longer than others did may end any moment."""
    return None if own_seconds is None else max(0.0, own_seconds - ran_seconds)


def about(span: timedelta) -> str:
    """A span as coarse as it is known: `under a minute`, `about 25 min`, `about 3 h`."""
    minutes = span.total_seconds() / 60
    if minutes < 1:
        return "under a minute"
    if minutes < 10:
        return f"about {round(minutes)} min"
    if minutes < 90:
        return f"about {5 * round(minutes / 5)} min"
    if minutes < 36 * 60:
        return f"about {round(minutes / 60)} h"
    return f"about {round(minutes / 60 / 24)} days"


def said(found: Expectation) -> str:
    """One phrase on when a job starts and ends."""
    done = f"done in {about(found.ends_in)}" if found.ends_in is not None else ""
    if found.runs:
        return done or "not known"
    if found.starts_in is None:
        start = "not known"
    elif found.starts_in < timedelta(minutes=1):
        start = "starts soon"
    else:
        start = f"starts in {about(found.starts_in)}"
    return ", ".join(words for words in (start, found.after, done) if words)
