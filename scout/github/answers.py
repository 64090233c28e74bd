"""What a reply of GitHub means: every status sorted into one of six kinds; pure, asks nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

SHORTEST_COOLDOWN_SECONDS = 60.0
LONGEST_COOLDOWN_SECONDS = 3600.0
LONGEST_RETRY_AFTER_SECONDS = 6 * 3600.0
LONGEST_RESET_SECONDS = 3660.0
"""A window of the primary limit is an hour long; a reset that lies further off is a wrong clock."""
REFUSED_COOLDOWN_SECONDS = 900.0
_SECONDARY = re.compile(r"secondary rate|abuse|rate limit", re.IGNORECASE)

CORE, GRAPHQL, SEARCH = BUCKETS = ("core", "graphql", "search")
"""GitHub counts each of these alone: one that is empty says nothing of the others."""


class Kind(StrEnum):
    """The six things a reply can be; only MISSING may ever lead to "gone", and never alone."""

    PAGE = "page"
    UNCHANGED = "unchanged"
    NOT_KNOWN = "not_known"
    MISSING = "missing"
    BLOCKED = "blocked"
    EMPTY = "empty"


class Limit(StrEnum):
    """Why GitHub wants to be left alone."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    REFUSED = "refused"


@dataclass(frozen=True)
class Quota:
    """What a token may still ask before `reset_at`; no bucket is the one that was asked of."""

    limit: int
    remaining: int
    reset_at: datetime
    bucket: str = ""


@dataclass(frozen=True)
class Answer:
    """One reply, sorted. `etag` and `next_url` stand for exactly the page that was asked."""

    kind: Kind
    status: int | None = None
    items: tuple[Mapping[str, Any], ...] = ()
    etag: str | None = None
    next_url: str | None = None
    moved: bool = False
    limit: Limit | None = None
    wait_seconds: float | None = None
    quota: Quota | None = None
    reason: str = ""

    @property
    def trusted(self) -> bool:
        """Whether the reply says something about the repository at all."""
        return self.kind is not Kind.NOT_KNOWN


def sort(status: int, headers: Mapping[str, str], text: str, *, now: datetime) -> Answer:
    """The answer of a reply that is no readable 200; `headers` ignore case."""
    quota = read_quota(headers, now=now)
    if status == 304:
        return Answer(Kind.UNCHANGED, status, etag=headers.get("ETag"), quota=quota)
    if status == 404:
        return Answer(Kind.MISSING, status, quota=quota, reason="GitHub knows no such page")
    if status == 451:
        return Answer(Kind.BLOCKED, status, quota=quota, reason="blocked for legal reasons")
    if status == 403 and "access blocked" in text.lower():
        return Answer(Kind.BLOCKED, status, quota=quota, reason="access is blocked by GitHub")
    if status == 409:
        return Answer(Kind.EMPTY, status, quota=quota, reason="the repository is empty")
    limit, wait = _limit(status, headers, text, now=now)
    return Answer(
        Kind.NOT_KNOWN,
        status,
        quota=quota,
        limit=limit,
        wait_seconds=wait,
        reason=_REASONS.get(limit) or f"GitHub answered {status}",
    )


UNREADABLE = "no readable answer"


def advice_for(reason: str) -> str:
    """What a person can do about a reason that an answer gave; "" where only waiting helps."""
    if reason.startswith(UNREADABLE):
        return "look at the network and at FORKSCOUT_GITHUB_API; it is asked again by itself"
    if _REASONS[Limit.REFUSED] in reason or "the token is not taken" in reason:
        return "the token is wrong or ran out: make a new one and set FORKSCOUT_GITHUB_TOKEN"
    if _REASONS[Limit.PRIMARY] in reason:
        return "wait; with FORKSCOUT_GITHUB_TOKEN set there are 5,000 requests an hour"
    if _REASONS[Limit.SECONDARY] in reason:
        return "wait; nothing is lost, it goes on by itself"
    if re.search(r"GitHub answered 5\d\d", reason):
        return "GitHub has trouble; it is asked again by itself"
    if re.search(r"GitHub answered 4\d\d", reason):
        return "check what the token may read, and FORKSCOUT_GITHUB_API"
    return "" if "check " in reason or "see the log" in reason else "it is asked again by itself"


_REASONS: Mapping[Limit | None, str] = {
    Limit.PRIMARY: "the hourly quota is used up",
    Limit.SECONDARY: "GitHub asked us to slow down",
    Limit.REFUSED: "GitHub refused the token",
}


def cooldown_until(answer: Answer, *, strikes: int, now: datetime) -> datetime:
    """Until when nobody may ask, given how often in a row we were told to stop."""
    if answer.limit is Limit.REFUSED:
        return now + timedelta(seconds=REFUSED_COOLDOWN_SECONDS)
    wait = answer.wait_seconds or 0.0
    if answer.limit is Limit.SECONDARY:
        doubled = SHORTEST_COOLDOWN_SECONDS * 2 ** min(max(strikes - 1, 0), 10)
        wait = max(wait, min(doubled, LONGEST_COOLDOWN_SECONDS))
    return now + timedelta(seconds=max(wait, SHORTEST_COOLDOWN_SECONDS))


def backoff_until(answer: Answer, *, failures: int, now: datetime) -> datetime:
    """When one page that could not be had is asked for again."""
    doubled = SHORTEST_COOLDOWN_SECONDS * 2 ** min(max(failures - 1, 0), 10)
    wait = max(min(doubled, LONGEST_COOLDOWN_SECONDS), answer.wait_seconds or 0.0)
    return now + timedelta(seconds=wait)


def read_quota(headers: Mapping[str, str], *, now: datetime) -> Quota | None:
    """The quota a reply tells of, its reset counted on GitHub's own clock."""
    limit, remaining = _number(headers, "X-RateLimit-Limit"), _number(headers, _REMAINING)
    seconds = _reset_seconds(headers, now=now)
    if limit is None or remaining is None or seconds is None or limit <= 0:
        return None
    told = headers.get("X-RateLimit-Resource") or ""
    return Quota(
        int(limit),
        int(max(remaining, 0)),
        now + timedelta(seconds=seconds),
        told if told in BUCKETS else "",
    )


def read_token_end(headers: Mapping[str, str]) -> datetime | None:
    """The moment the token ends, where GitHub tells one; it does so for those that end at all."""
    text = headers.get("GitHub-Authentication-Token-Expiration") or ""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (UTC|[+-]\d{4})", text, re.ASCII)
    if not found:
        return None
    zone = "+0000" if found[2] == "UTC" else found[2]
    try:
        return datetime.strptime(f"{found[1]} {zone}", "%Y-%m-%d %H:%M:%S %z").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def primary_wait(headers: Mapping[str, str], *, now: datetime) -> float:
    """How long nobody may ask once nothing is left."""
    return (_reset_seconds(headers, now=now) or SHORTEST_COOLDOWN_SECONDS) + 1


_REMAINING = "X-RateLimit-Remaining"


def _limit(
    status: int, headers: Mapping[str, str], text: str, *, now: datetime
) -> tuple[Limit | None, float | None]:
    after = _retry_after(headers, now=now)
    if status == 401:
        return Limit.REFUSED, None
    if status not in (403, 429):
        return None, after
    if after is not None:
        return Limit.SECONDARY, after
    if _number(headers, _REMAINING) == 0:
        return Limit.PRIMARY, primary_wait(headers, now=now)
    if status == 429 or _SECONDARY.search(text):
        return Limit.SECONDARY, None
    return None, None


def _retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    text = headers.get("Retry-After")
    if text is None:
        return None
    seconds = _number(headers, "Retry-After")
    if seconds is None:
        try:
            seconds = (parsedate_to_datetime(text) - _server_time(headers, now)).total_seconds()
        except (ValueError, TypeError):
            seconds = SHORTEST_COOLDOWN_SECONDS
    return min(max(seconds, 1.0), LONGEST_RETRY_AFTER_SECONDS)


def _reset_seconds(headers: Mapping[str, str], *, now: datetime) -> float | None:
    reset = _number(headers, "X-RateLimit-Reset")
    if reset is None:
        return None
    seconds = reset - _server_time(headers, now).timestamp()
    return min(max(seconds, 0.0), LONGEST_RESET_SECONDS)


def _server_time(headers: Mapping[str, str], now: datetime) -> datetime:
    try:
        said = parsedate_to_datetime(headers.get("Date") or "")
    except (ValueError, TypeError):
        return now
    return said if said.tzinfo else said.replace(tzinfo=UTC)


def _number(headers: Mapping[str, str], name: str) -> float | None:
    text = (headers.get(name) or "").strip()
    return float(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else None
