"""What a reply of the model hub means: every status sorted into one of five kinds; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from scout.github.answers import Quota

WINDOW_SECONDS = 300.0
"""The hub counts requests in fixed windows of five minutes."""
LONGEST_WAIT_SECONDS = 3600.0
SHORTEST_WAIT_SECONDS = 1.0
REFUSED_WAIT_SECONDS = 900.0
API, RESOLVERS, PAGES = BUCKETS = ("api", "resolvers", "pages")
"""The hub counts each of these alone."""

_ENTRY = re.compile(
    r'"(?P<bucket>[a-z]{1,40})";\s*r=(?P<left>[0-9]{1,9});\s*t=(?P<wait>[0-9]{1,9})'
)
_POLICY = re.compile(r'"[a-z]{1,40}";\s*q=(?P<limit>[0-9]{1,9})')


class Kind(StrEnum):
    """The five things a reply can be; only MISSING may ever lead to "gone", and never alone."""

    PAGE = "page"
    NOT_KNOWN = "not_known"
    MISSING = "missing"
    GATED = "gated"
    DISABLED = "disabled"


@dataclass(frozen=True)
class Answer:
    """One reply, sorted. `wait_seconds` is how long the hub wants its bucket left alone.

    `moved_from` is set where the address asked for led to another one of the hub; `is_revision`
    where it is the commit and not the repository that is missing.
    """

    kind: Kind
    status: int | None = None
    body: Any = None
    text: str = ""
    next_url: str | None = None
    moved: bool = False
    limited: bool = False
    wait_seconds: float | None = None
    quota: Quota | None = None
    reason: str = ""
    is_revision: bool = False

    @property
    def trusted(self) -> bool:
        """Whether the reply says something about the repository at all."""
        return self.kind is not Kind.NOT_KNOWN


def sort(status: int, headers: Mapping[str, str], *, anonymous: bool, now: datetime) -> Answer:
    """The answer of a reply that is no readable 200; `headers` ignore case.

    The hub tells a stranger 401 for a repository that is not there; to a token, 401 is a refusal.
    """
    quota = read_quota(headers, now=now)
    code = headers.get("X-Error-Code", "")
    if "disabled" in headers.get("X-Error-Message", "").lower() and status == 403:
        return Answer(Kind.DISABLED, status, quota=quota, reason="the hub has disabled it")
    if status == 451:
        return Answer(Kind.DISABLED, status, quota=quota, reason="blocked for legal reasons")
    if code == "GatedRepo" and status in (401, 403):
        return Answer(Kind.GATED, status, quota=quota, reason="gated: access has to be asked for")
    if code in _MISSING and status in (401, 404):
        return Answer(
            Kind.MISSING,
            status,
            quota=quota,
            reason=_MISSING[code],
            is_revision=code in ("RevisionNotFound", "EntryNotFound"),
        )
    if status in (404, 410) or (status == 401 and anonymous):
        return Answer(Kind.MISSING, status, quota=quota, reason="missing, private or renamed")
    if status == 401:
        return Answer(
            Kind.NOT_KNOWN,
            status,
            limited=True,
            wait_seconds=REFUSED_WAIT_SECONDS,
            reason="the hub refused the token",
        )
    wait = _retry_after(headers)
    if status == 429:
        wait = _wait(headers) if wait is None else wait
        return Answer(
            Kind.NOT_KNOWN,
            status,
            quota=quota,
            limited=True,
            wait_seconds=wait,
            reason="the hub's quota is used up",
        )
    return Answer(
        Kind.NOT_KNOWN, status, quota=quota, wait_seconds=wait, reason=f"the hub answered {status}"
    )


def advice_for(reason: str) -> str:
    """What a person can do about a reason that an answer gave; "" where the log says it."""
    if "refused the token" in reason:
        return "the token is wrong or ran out: make a new one and set FORKSCOUT_HF_TOKEN"
    if "quota is used up" in reason:
        return "wait; with FORKSCOUT_HF_TOKEN set the hub allows more"
    if reason.startswith("gated"):
        return "accept the terms on its page, then set FORKSCOUT_HF_TOKEN"
    if reason.startswith("no readable answer"):
        return "look at the network and at FORKSCOUT_HF_ENDPOINT; it is asked again by itself"
    return "" if "see the log" in reason else "it is asked again by itself"


_MISSING = {
    "RepoNotFound": "missing, private or renamed",
    "RevisionNotFound": "that commit is not there",
    "EntryNotFound": "that file is not there",
}


def read_quota(headers: Mapping[str, str], *, now: datetime) -> Quota | None:
    """The quota a reply tells of; None where it tells none."""
    entry = _ENTRY.search(headers.get("RateLimit", "")[:500])
    policy = _POLICY.search(headers.get("RateLimit-Policy", "")[:500])
    if entry is None or policy is None or int(policy["limit"]) <= 0:
        return None
    wait = min(float(entry["wait"]), LONGEST_WAIT_SECONDS)
    bucket = entry["bucket"] if entry["bucket"] in BUCKETS else ""
    return Quota(int(policy["limit"]), int(entry["left"]), now + timedelta(seconds=wait), bucket)


def _wait(headers: Mapping[str, str]) -> float:
    """To the end of the window and a second more; a whole window where none is told."""
    entry = _ENTRY.search(headers.get("RateLimit", "")[:500])
    return min((float(entry["wait"]) if entry else WINDOW_SECONDS) + 1, LONGEST_WAIT_SECONDS)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    said = (headers.get("Retry-After") or "").strip()
    if not re.fullmatch(r"[0-9]{1,9}", said):
        return None
    return min(max(float(said), SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)
