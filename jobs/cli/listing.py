"""Commands that tell of jobs: the list, one job, why it is where it is; they change nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobs.cli import explanation
from jobs.config import Settings
from jobs.db import database_now, open_database, reading
from jobs.demo import note_of
from jobs.estimates import Expectation
from jobs.lifecycle import LIVE
from jobs.model import Lane, State
from jobs.screen import screen
from jobs.store import line, pauses
from jobs.store import work as store
from jobs.store.expectations import Expectations
from jobs.store.needs import held_by, needs_of, open_needs_of
from jobs.tables import JobRow
from jobs.terminal import json_text, one_line

app = typer.Typer()

NOTHING_YET = "there is no job yet"
NOTHING_DEAD = "there is no dead letter"
NOTHING_WAITS = "no job is waiting; `--all` lists the ended ones"
JSON_OPTION = typer.Option(False, "--json", help="print JSON")


@app.command("jobs")
def list_jobs(
    everything: bool = typer.Option(False, "--all", help="ended jobs too"),
    dead: bool = typer.Option(False, "--dead", help="dead letters: jobs nobody tries any more"),
    why: int | None = typer.Option(
        None, metavar="JOB", help="explain one job: why, what it waits for"
    ),
    limit: int = typer.Option(50, min=1, max=1000, help="how many at most"),
    as_json: bool = JSON_OPTION,
) -> None:
    """List jobs in the order they are served, or explain one.

    Example: `forkscout jobs --all`, `forkscout jobs --why 7`
    """
    settings = Settings()
    if why is not None:
        explanation.explain(settings, why, as_json=as_json)
        return
    with reading(open_database(settings)) as session:
        seen = Expectations(session, database_now(session))
        if dead or everything:
            states = (State.DEAD,) if dead else ()
            rows = list(store.jobs(session, states=states, limit=limit))
            likely = list(seen.each([row for row in rows if row.state in LIVE]))
        else:
            rows = line.live_rows(session, most=limit)
            likely = list(seen.in_order(rows))
        blocked = [row.id or 0 for row in rows if row.state == State.BLOCKED]
        needs = open_needs_of(session, blocked) if blocked else {}
        held = {number: held_by(found) for number, found in needs.items()}
        paused = pauses.pauses(session, seen.now)
    found = {each.job_id: each.when for each in likely}
    places = {each.job_id: each.position for each in likely}
    if as_json:
        told = [
            {
                **job_json(row),
                **_likely(found.get(row.id or 0)),
                "position": places.get(row.id or 0),
                "waits_for": [need.id for need in needs.get(row.id or 0, ())],
                "paused": row.state == State.QUEUED and row.queue in paused,
            }
            for row in rows
        ]
        typer.echo(json_text(told))
        return
    if not rows:
        nothing = NOTHING_DEAD if dead else NOTHING_YET if everything else NOTHING_WAITS
        typer.echo(nothing)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("job", "state", "lane", "what", "attempt", "expected", "note"):
        table.add_column(name, overflow="fold")
    for row in rows:
        place = places.get(row.id or 0)
        cells = (
            str(row.id),
            row.state,
            f"{Lane(row.lane).word} {place or ''}".strip() if row.state in LIVE else "",
            row.title,
            str(row.attempts),
            str(found[row.id]) if row.id in found else "",
            held.get(row.id or 0) or _note(row),
        )
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    screen().print(table)
    for queue in sorted({row.queue for row in rows if row.state == State.QUEUED} & set(paused)):
        typer.echo(one_line(pauses.said(paused[queue])))
    if dead:
        typer.echo(
            "`forkscout jobs --why JOB` tells its attempts, `forkscout retry JOB` tries again"
        )


@app.command()
def show(job: int = typer.Argument(help="number of the job"), as_json: bool = JSON_OPTION) -> None:
    """Show one job: state, why, attempts, what went wrong.

    Example: `forkscout show 7`
    """
    with reading(open_database(Settings())) as session:
        row = store.job(session, job)
        needs = [f"{need.id} ({need.state})" for need in needs_of(session, job)]
        seen = Expectations(session, database_now(session))
        likely = seen.alone(row).when if row.state in LIVE else None
    if as_json:
        more = {**_likely(likely), "payload": row.payload, "needs": needs}
        typer.echo(json_text({**job_json(row), **more}))
        return
    facts = {
        "state": row.state,
        "what": row.title,
        "why": row.reason,
        "needs jobs": ", ".join(needs),
        "attempts": row.attempts,
        "expected": str(likely) if likely else None,
        "held by": row.leased_by,
        "queued": row.created_at,
        "started": row.started_at,
        "ended": row.finished_at,
        "note": _note(row),
        "next": row.advice,
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value not in (None, ""):
            shown = f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else str(value)
            table.add_row(Text(name, style="bold"), Text(one_line(shown)))
    Console().print(f"job {row.id}", style="bold")
    Console().print(table)


def _note(row: JobRow) -> str:
    if row.state == State.RUNNING and row.progress:
        return note_of(row)
    cause = f"[{row.failure_class}] " if row.failure_class else ""
    if row.blocked_by and not row.message:
        return f"waits for {row.blocked_by.replace(':', ' ')}"
    return f"{cause}{row.message}"


def _likely(found: Expectation | None) -> dict[str, Any]:
    spans = (found.starts_in, found.ends_in) if found else (None, None)
    names = ("likely_start_in_seconds", "likely_end_in_seconds")
    return {
        name: None if span is None else round(span.total_seconds())
        for name, span in zip(names, spans, strict=True)
    }


def job_json(row: JobRow) -> dict[str, Any]:
    """A row as the commands print it."""
    return row.model_dump(exclude={"payload", "identity"})
