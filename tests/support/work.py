"""Requests for jobs with every field filled; a test names only what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jobs.model import Kind, Lane
from jobs.planner import JobRequest, digest

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def request(
    title: str,
    *,
    kind: Kind = Kind.SMOKE,
    queue: str = "build",
    lane: Lane = Lane.FRESH,
    payload: Mapping[str, Any] | None = None,
    needs: tuple[str, ...] = (),
    **fields: Any,
) -> JobRequest:
    """A request whose identity is its title."""
    return JobRequest(
        kind=kind,
        queue=queue,
        lane=lane,
        identity=digest(title),
        title=title,
        payload=payload or {},
        reason="a test",
        needs=needs,
        **fields,
    )
