"""Commands of trust: let strangers' code in at one exact commit, take that back, list both."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from jobs import submit
from jobs.cli.desk import JSON_OPTION, say_unserved
from jobs.config import Settings
from jobs.db import database_now, open_database, reading, writing
from jobs.screen import screen
from jobs.store import approvals as store
from jobs.store.approvals import Approval, Decided, Waiting
from jobs.terminal import json_text, printable

app = typer.Typer()

NOTHING = "nothing waits for a person, and no approval stands"


@app.command()
def approve(
    place: str = typer.Argument(metavar="ENGINE@SHA", help="engine and its exact commit"),
    days: float = typer.Option(store.DEFAULT_DAYS, help="how long the approval holds"),
    note: str = typer.Option("", help="why, for those who read it later"),
    by: str = typer.Option("", help="who; empty: the name of your account"),
    withdraw: bool = typer.Option(False, "--withdraw", help="take the approval back"),
    as_json: bool = JSON_OPTION,
) -> None:
    """Let one exact commit of an engine be built; a later push needs a new word.

    Example: `forkscout approve beellama@633cd34fb6df --days 14`
    """
    settings = Settings()
    database = open_database(settings)
    who = by or _account()
    with writing(database) as session:
        now = database_now(session)
        if withdraw:
            done = store.withdraw(session, place, by=who, now=now)
        else:
            done = store.approve(session, place, by=who, now=now, days=days, note=note)
    unserved = [] if withdraw else submit.ring_for(settings, database, done.jobs)
    if as_json:
        typer.echo(json_text(_as_json(done)))
        return
    row = done.approvals[-1]
    engine = printable(place.partition("@")[0])
    if withdraw:
        typer.echo(f"the approval of {engine} at {row.commit} is withdrawn by {printable(who)}")
    else:
        typer.echo(
            f"{engine} at {row.commit} is approved by {printable(who)} "
            f"until {row.expires_at:%Y-%m-%d %H:%M} UTC"
        )
    for job in done.jobs:
        state = "is asked to stop" if job.cancel_requested else f"is {job.state}"
        typer.echo(f"job {job.id} {state}: {printable(job.title)}")
    say_unserved(unserved)


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


def _as_json(done: Decided) -> dict[str, Any]:
    return {
        "approvals": [row.model_dump() for row in done.approvals],
        "jobs": [
            {"id": job.id, "state": job.state, "cancel_requested": job.cancel_requested}
            for job in done.jobs
        ],
    }


@app.command()
def approvals(
    everything: bool = typer.Option(False, "--all", help="those too that ended"),
    as_json: bool = JSON_OPTION,
) -> None:
    """List builds that wait for a person, and the approvals that stand.

    Example: `forkscout approvals --all`
    """
    with reading(open_database(Settings())) as session:
        found = store.approvals(session, database_now(session), everything=everything)
        waiting = store.waiting(session)
    if as_json:
        told = {"waiting": [asdict(w) for w in waiting], "approvals": [asdict(a) for a in found]}
        typer.echo(json_text(told))
        return
    if not found and not waiting:
        typer.echo(NOTHING)
    if waiting:
        screen().print(_waiting_table(waiting))
        typer.echo("`forkscout approve ENGINE@SHA` lets one in, `forkscout cancel JOB` forgets it")
    if found:
        screen().print(_approvals_table(found))


def _waiting_table(waiting: Sequence[Waiting]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("waits", "commit", "revision", "of", "since", "asked by"):
        table.add_column(name, overflow="fold")
    for each in waiting:
        cells = (f"job {each.job_id}", f"{each.engine}@{each.commit}", each.label, each.repo)
        since = f"{each.since:%Y-%m-%d %H:%M} UTC"
        table.add_row(*(Text(printable(cell)) for cell in (*cells, since, each.asked_by)))
    return table


def _approvals_table(found: Sequence[Approval]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("approved", "revision", "state", "until", "by", "note"):
        table.add_column(name, overflow="fold")
    for each in found:
        until = each.withdrawn_at or each.expires_at
        who = f"{each.approved_by}, withdrawn by {each.withdrawn_by}" if each.withdrawn_by else ""
        cells = (f"{each.engine}@{each.commit}", each.label, each.state)
        when = f"{until:%Y-%m-%d %H:%M} UTC"
        more = (when, who or each.approved_by, each.note)
        table.add_row(*(Text(printable(cell)) for cell in (*cells, *more)))
    return table
