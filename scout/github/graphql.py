"""What a reply to a GraphQL question means; half an answer is none. Pure, it asks nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from scout.github.answers import (
    GRAPHQL,
    LONGEST_RESET_SECONDS,
    Answer,
    Kind,
    Limit,
    Quota,
    primary_wait,
    read_quota,
    sort,
)
from scout.github.texts import moment, number, part


def sort_reply(status: int, headers: Mapping[str, str], text: str, *, now: datetime) -> Answer:
    """The answer; only a 200 with data and without any error is a page."""
    if status != 200:
        return replace(sort(status, headers, text[:4000], now=now), kind=Kind.NOT_KNOWN)
    quota = read_quota(headers, now=now)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as fault:
        reason = f"no readable answer ({type(fault).__name__})"
        return Answer(Kind.NOT_KNOWN, status, quota=quota, reason=reason)
    errors, data = part(body, "errors"), part(body, "data")
    if errors or not isinstance(data, dict):
        return _refused(errors, headers, quota, now=now)
    return Answer(Kind.PAGE, status, items=(data,), quota=quota or _told_quota(data, now=now))


def _refused(
    errors: Any, headers: Mapping[str, str], quota: Quota | None, *, now: datetime
) -> Answer:
    listed = errors if isinstance(errors, list) else []
    kinds = {str(part(each, "type"))[:40] for each in listed}
    said = " ".join(str(part(each, "message"))[:200] for each in listed[:10]).lower()
    limit, wait, reason = None, None, "GitHub answered with errors"
    if "secondary rate" in said:
        limit, reason = Limit.SECONDARY, "GitHub asked us to slow down"
    elif "RATE_LIMITED" in kinds or "rate limit" in said:
        limit, wait = Limit.PRIMARY, primary_wait(headers, now=now)
        reason = "the hourly quota is used up"
    elif words := sorted(kind for kind in kinds if re.fullmatch(r"[A-Z_]+", kind)):
        reason = f"{reason} ({', '.join(words)})"
    return Answer(Kind.NOT_KNOWN, 200, limit=limit, wait_seconds=wait, quota=quota, reason=reason)


def _told_quota(data: Mapping[str, Any], *, now: datetime) -> Quota | None:
    """What the body says of the quota, where no header does."""
    limit = number(part(data, "rateLimit", "limit"))
    remaining = number(part(data, "rateLimit", "remaining"))
    reset_at = moment(part(data, "rateLimit", "resetAt"))
    if not limit or remaining is None or reset_at is None:
        return None
    furthest = now + timedelta(seconds=LONGEST_RESET_SECONDS)
    return Quota(limit, remaining, min(reset_at, furthest), GRAPHQL)
