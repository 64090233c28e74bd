"""The command that reads what was seen: all of it, of one kind, of one engine, since a moment."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from sqlmodel import Session

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.errors import UsageError, did_you_mean
from jobs.store import catalog, led, source_health
from jobs.store.led import LedTo
from jobs.tables import EngineRow, EventRow
from jobs.terminal import counted, json_text, one_line
from scout.event_kinds import KINDS

app = typer.Typer()

NOTHING_SEEN = "nothing was seen yet: forkscout scout run"
NOTHING_MOVED = (
    "nothing moved yet: a first look notes what is there, the next one tells what is new; "
    "forkscout up looks by itself"
)
INDENT = " " * 22
MOST_NUMBERS = 8

_AGO = re.compile(r"([1-9][0-9]{0,3})([mhdw])", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@app.command("events")
def events(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="how many, newest first")] = 20,
    kind: Annotated[
        str, typer.Option(help="only one kind, as fork_pushed; docs/scouting.md lists all")
    ] = "",
    engine: Annotated[str, typer.Option(help="only of one engine")] = "",
    since: Annotated[str, typer.Option(help="only seen since: 2026-11-30, 90m, 36h, 7d, 2w")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for programs")] = False,
) -> None:
    """Show what was seen, newest first.

    Example: forkscout events --kind fork_pushed --engine buun --since 7d
    """
    moment = since_when(since, clock.now()) if since else None
    database = open_database(Settings())
    try:
        with reading(database) as session:
            engine_id = catalog.engine_named(session, engine).id if engine else None
            wanted = _checked(session, kind) if kind else None
            rows = catalog.events(
                session, limit=limit, kind=wanted, engine_id=engine_id, since=moment
            )
            names = {row.id: row for row in catalog.engines(session, retired=True)}
            came = led.led_to(session, [row.id or 0 for row in rows])
            looked = bool(source_health.outlook(session).sources)
    finally:
        database.dispose()
    if as_json:
        found = [_as_json(row, names.get(row.engine_id), came[row.id or 0]) for row in rows]
        typer.echo(json_text(found))
        return
    if not rows:
        asked = kind or engine or since
        typer.echo(
            "nothing of that was seen: forkscout events shows all there is"
            if asked
            else NOTHING_MOVED
            if looked
            else NOTHING_SEEN
        )
    for row in rows:
        typer.echo(f"{row.seen_at:%Y-%m-%d %H:%M} UTC  {one_line(row.title)}")
        if after := _came_of(row.id or 0, came[row.id or 0]):
            typer.echo(f"{INDENT}{one_line(after)}")


def since_when(text: str, now: datetime) -> datetime:
    """A day, a moment, or how long ago; without a time zone it is UTC."""
    if ago := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text[:80]!r} is no moment", advice="Write a day as 2026-11-30, or 90m, 36h, 7d, 2w."
        ) from None


def _checked(session: Session, kind: str) -> str:
    """A kind that is spelled right and has not happened yet is no mistake."""
    known = KINDS | catalog.event_kinds(session)
    if kind not in known:
        raise UsageError(
            f"unknown kind of event {kind[:80]!r}",
            advice=did_you_mean(kind, known, most=len(known)),
        )
    return kind


def _came_of(event_id: int, came: LedTo) -> str:
    """The jobs by number, and where to read what was left out."""
    told = []
    if came.jobs:
        numbers = ", ".join(str(job.id) for job in came.jobs[:MOST_NUMBERS])
        more = f" and {len(came.jobs) - MOST_NUMBERS} more" if len(came.jobs) > MOST_NUMBERS else ""
        told.append(f"led to jobs {numbers}{more}")
    if came.left_out:
        left = counted(len(came.left_out), "bench", "benches")
        told.append(f"{left} left out: forkscout plan --left-out {event_id}")
    return "; ".join(told)


def _as_json(row: EventRow, engine: EngineRow | None, came: LedTo) -> dict[str, object]:
    return {
        "id": row.id,
        "key": row.key,
        "kind": row.kind,
        "engine": engine.name if engine else None,
        "title": row.title,
        "seen_at": row.seen_at.isoformat(),
        "happened_at": row.happened_at.isoformat() if row.happened_at else None,
        "planned": row.planned,
        "payload": row.payload,
        "jobs": [asdict(job) for job in came.jobs],
        "left_out": [asdict(each) for each in came.left_out],
    }
