"""Commands that watch more closely, or no more: issues, pull requests, forks; they only note it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from sqlalchemy import Engine
from sqlmodel import Session

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading, writing
from jobs.errors import UsageError
from jobs.git import repo_url
from jobs.sightings import RepositoryRow
from jobs.store import forks as store
from scout.github.governor import Tier, tier_of

app = typer.Typer()
watch_app = typer.Typer(no_args_is_help=True, help="Hear about an issue, a pull request, a fork.")
unwatch_app = typer.Typer(no_args_is_help=True, help="Hear no more about it.")
app.add_typer(watch_app, name="watch")
app.add_typer(unwatch_app, name="unwatch")

AsJson = Annotated[bool, typer.Option("--json", help="print JSON for programs")]
Place = Annotated[str, typer.Argument(help="owner/name#number")]
Name = Annotated[str, typer.Argument(metavar="OWNER/NAME", help="a fork that was found")]


@contextmanager
def _database() -> Iterator[Engine]:
    engine = open_database(Settings())
    try:
        yield engine
    finally:
        engine.dispose()


def issue_place(text: str) -> tuple[str, int]:
    """`owner/name#35` in its parts; nothing else is taken, no address either."""
    found = re.fullmatch(r"([^#\s]+)#([1-9][0-9]{0,8})", text, re.ASCII)
    if not found:
        raise UsageError(
            f"{text[:80]!r} is no issue", advice="Write owner/name#number, as ggml-org/llama.cpp#1."
        )
    repo_url(found[1])
    return found[1], int(found[2])


@watch_app.command("issue")
def watch_issue(
    place: Place, note: Annotated[str, typer.Option(help="why it matters to you")] = ""
) -> None:
    """Raise an event whenever this issue or pull request moves.

    Example: forkscout watch issue spiritbuun/buun-llama-cpp#35
    """
    full_name, number = issue_place(place)
    with _database() as database, writing(database) as session:
        _, is_new = store.link_issue(session, full_name, number, note=note[:300], now=clock.now())
    typer.echo(f"{'watching' if is_new else 'already watching'} {full_name}#{number}")


@watch_app.command("list")
def watch_list(as_json: AsJson = False) -> None:
    """Show the issues and pull requests that are watched.

    Example: forkscout watch list
    """
    with _database() as database, reading(database) as session:
        rows = store.linked_issues(session)
    if as_json:
        keys = ("full_name", "number", "kind", "state", "title", "note", "moved_at")
        found = [{key: getattr(row, key) for key in keys} for row in rows]
        typer.echo(json.dumps(found, indent=2, default=str, allow_nan=False))
        return
    if not rows:
        typer.echo("no issue is watched: forkscout watch issue owner/name#number")
    for row in rows:
        typer.echo(f"{row.full_name}#{row.number}  {row.kind} {row.state}  {row.title}".rstrip())


@unwatch_app.command("issue")
def unwatch_issue(place: Place) -> None:
    """Forget an issue or pull request.

    Example: forkscout unwatch issue spiritbuun/buun-llama-cpp#35
    """
    full_name, number = issue_place(place)
    with _database() as database, writing(database) as session:
        if not store.unlink_issue(session, full_name, number):
            raise UsageError(
                f"{full_name}#{number} is not watched", advice="See: forkscout watch list"
            )
    typer.echo(f"no longer watching {full_name}#{number}")


@watch_app.command("fork")
def watch_fork(name: Name) -> None:
    """Look at a fork's branches, releases, issues and pull requests as at a watched one's.

    Example: forkscout watch fork some/llama.cpp
    """
    with _database() as database, writing(database) as session:
        row = _fork(session, name)
        store.put_in_tier(session, row, Tier.WATCHED)
        typer.echo(f"watching {row.full_name}; forkscout forks show {row.full_name}")


@unwatch_app.command("fork")
def unwatch_fork(name: Name) -> None:
    """Look at a fork only when somebody pushes to it.

    Example: forkscout unwatch fork some/llama.cpp
    """
    with _database() as database, writing(database) as session:
        row = _fork(session, name)
        tier = tier_of(
            watched=False, created_at=row.created_at, pushed_at=row.pushed_at, now=clock.now()
        )
        store.put_in_tier(session, row, tier)
        typer.echo(f"no longer watching {row.full_name} closely")


def _fork(session: Session, name: str) -> RepositoryRow:
    row = store.repository_called(session, name)
    if row is None:
        raise UsageError(f"no fork {name[:80]!r} is known", advice="See: forkscout forks")
    if row.engine_id is not None:
        raise UsageError(
            f"{row.full_name} is an engine of the watch list",
            advice="Change the list: forkscout watchlist import",
        )
    return row
