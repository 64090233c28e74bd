"""What `forkscout jobs --why` prints: one job explained, for people or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import typer

from jobs.config import Settings
from jobs.db import database_now, open_database, reading
from jobs.model import Lane
from jobs.store import reasons
from jobs.store.reasons import Needed, Why
from jobs.terminal import json_text, one_line


def explain(settings: Settings, job_id: int, *, as_json: bool) -> None:
    """Print why a job exists, why it waits, what it waits for and what came of its attempts."""
    with reading(open_database(settings)) as session:
        found = reasons.why(session, job_id, database_now(session), share=settings.source_share)
    if as_json:
        typer.echo(json_text(asdict(found)))
        return
    for line in told(found):
        typer.echo(one_line(line))


def told(found: Why) -> Iterator[str]:
    """The explanation, line by line."""
    job = found.job
    yield f"job {job.id}: {job.title} ({job.state})"
    yield "why it exists"
    for origin in found.origins:
        number = f" ({origin.kind} {origin.id})" if origin.id is not None else ""
        at = f", {origin.at:%Y-%m-%d %H:%M} UTC" if origin.at else ""
        yield f"  {origin.says}{number}{at}"
    first = f", priority {found.priority}" if found.priority else ""
    yield f"  lane {Lane(job.lane).word}{first}"
    if job.expires_at:
        yield f"  worth nothing after {job.expires_at:%Y-%m-%d %H:%M} UTC"
    yield from _part("why it waits", [wait.says for wait in found.waits])
    yield from _part("what it waits for", list(_tree(found.needs, 0)))
    yield from _part(
        "what waits for it", [f"job {d.id}: {d.title} ({d.state})" for d in found.dependents]
    )
    yield from _part(
        "attempts that are over",
        [
            f"{a.started_at:%Y-%m-%d %H:%M} UTC by {a.worker or 'nobody'}: {a.outcome}"
            + (f" [{a.failure_class}]" if a.failure_class else "")
            + (f" {a.message}" if a.message else "")
            for a in found.attempts
        ],
    )
    yield from _part("note", [text for text in (job.message, job.advice) if text])
    yield f"expected: {job.expected}"


def _part(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield title
        yield from (f"  {line}" for line in lines)


def _tree(needs: Sequence[Needed], depth: int) -> Iterator[str]:
    for need in needs:
        cause = f", {need.failure_class}" if need.failure_class else ""
        how = "" if need.must_succeed else "; its end is enough"
        yield f"{'  ' * depth}job {need.id}: {need.title} ({need.state}{cause}{how})"
        yield from _tree(need.needs, depth + 1)
