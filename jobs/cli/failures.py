"""Commands about failures that no rule explained: list, read, take off the list."""

from __future__ import annotations

from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from jobs.config import Settings
from jobs.db import open_database, reading, writing
from jobs.failure_tables import FailureRow
from jobs.screen import screen
from jobs.store import failures as store
from jobs.terminal import json_text, printable

app = typer.Typer()
failures_app = typer.Typer(help="What failed and was understood by no rule, until it was read.")
app.add_typer(failures_app, name="failures")

JSON_OPTION = typer.Option(False, "--json", help="print JSON")
NOTHING = "every failure was understood or read; `forkscout failures --all` lists all"
NOTHING_EVER = "nothing has failed yet"


@failures_app.callback(invoke_without_command=True)
def failures(
    context: typer.Context,
    everything: bool = typer.Option(False, "--all", help="also what was understood or read"),
    limit: int = typer.Option(50, min=1, max=1000, help="how many at most"),
    as_json: bool = JSON_OPTION,
) -> None:
    """List failures that no rule knows, newest first, until somebody has read them.

    Example: `forkscout failures`, then `forkscout failures show 3`
    """
    if context.invoked_subcommand is not None:
        return
    with reading(open_database(Settings())) as session:
        found = store.listed(session, everything=everything, limit=limit)
    if as_json:
        rows = [{**_told(row), "what": job.title, "job_state": job.state} for row, job in found]
        typer.echo(json_text(rows))
        return
    if not found:
        typer.echo(NOTHING_EVER if everything else NOTHING)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("no.", "job", "class", "phase", "ended with", "blame", "what"):
        table.add_column(name, overflow="fold")
    for row, job in found:
        cells = (str(row.id), str(row.job_id), row.failure_class, row.phase, row.ending)
        table.add_row(*(Text(printable(cell)) for cell in (*cells, row.blame, job.title)))
    screen().print(table)


@failures_app.command("show")
def show(
    number: int = typer.Argument(help="number of the failure"), as_json: bool = JSON_OPTION
) -> None:
    """Show one failure: class, phase, how it ended, the last lines of its log.

    Example: `forkscout failures show 3`
    """
    with reading(open_database(Settings())) as session:
        told = _told(store.failure(session, number))
    if as_json:
        typer.echo(json_text(told))
        return
    lines = told.pop("lines")
    for key, value in told.items():
        typer.echo(f"{key}: {printable(str(value))}")
    typer.echo("")
    for line in lines:
        typer.echo(printable(line))


@failures_app.command("reviewed")
def reviewed(number: int = typer.Argument(help="number of the failure")) -> None:
    """Take a failure off the list, because somebody has read it.

    Example: `forkscout failures reviewed 3`
    """
    with writing(open_database(Settings())) as session:
        row = store.review(session, number)
        words = f"failure {row.id} of job {row.job_id} is off the list"
    typer.echo(words)


def _told(row: FailureRow) -> dict[str, Any]:
    return row.model_dump()
