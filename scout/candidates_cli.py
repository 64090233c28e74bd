"""How a person looks at candidate forks at once: it waits a minute at most, and prints."""

from __future__ import annotations

import json

import typer
from sqlalchemy import Engine

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database
from jobs.terminal import printable
from scout.candidates import CandidateRound, look_at_candidates

COUNT, SECONDS = 100, 60.0
"""How many candidates a person waits for, and how long; the schedule takes less at a time."""


def say(name: str) -> None:
    """Tell whom is looked at now, beside the output."""
    typer.echo(f"looking at {printable(name)} ...", err=True)


def look(database: Engine, settings: Settings) -> CandidateRound:
    """One round, as long as a person waits."""
    return look_at_candidates(
        database,
        network=settings.network,
        now=clock.now,
        count=COUNT,
        seconds=SECONDS,
        on_look=say,
    )


def run(settings: Settings, *, as_json: bool) -> None:
    """Look, and print what was found; ends with 1 where something failed."""
    database = open_database(settings)
    try:
        found = look(database, settings)
    finally:
        database.dispose()
    if as_json:
        facts = {
            "looked": list(found.looked),
            "new": [
                {"kind": each.kind, "key": each.key, "title": each.title} for each in found.new
            ],
            "troubles": [{"fork": t.engine, "message": t.message} for t in found.troubles],
            "left": found.left,
        }
        typer.echo(json.dumps(facts, indent=2, allow_nan=False))
    else:
        _tell(found)
    if found.troubles:
        raise typer.Exit(1)


def _tell(found: CandidateRound) -> None:
    for name in found.looked:
        typer.echo(f"looked at {printable(name)}")
    for news in found.new:
        typer.echo(f"new: {printable(news.title)}")
    for trouble in found.troubles:
        typer.echo(printable(f"{trouble.engine}: {trouble.message}; {trouble.advice}"), err=True)
    if found.left:
        typer.echo(f"{found.left} forks are still to be looked at: run this again")
    if not found.looked:
        typer.echo("no fork is due: nobody pushed to one since the last look")
