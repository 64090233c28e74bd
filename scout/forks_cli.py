"""Commands about forks and linked issues: rank, watch, unwatch; they print, others decide."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from sqlalchemy import Engine

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading, writing
from jobs.errors import UsageError
from jobs.git import repo_url
from jobs.store import forks as store
from jobs.terminal import json_text, one_line
from scout import fork_tiers

app = typer.Typer()
watch_app = typer.Typer(no_args_is_help=True, help="Hear about an issue, a pull request or a fork.")
unwatch_app = typer.Typer(no_args_is_help=True, help="Hear no more about it.")
app.add_typer(watch_app, name="watch")
app.add_typer(unwatch_app, name="unwatch")

AsJson = Annotated[bool, typer.Option("--json", help="print JSON for programs")]
Place = Annotated[str, typer.Argument(help="owner/name#number, or the address of its page")]
ForkName = Annotated[str, typer.Argument(metavar="OWNER/NAME", help="a fork that was found")]


PLACE = re.compile(r"([^#\s]+)#([1-9][0-9]{0,8})", re.ASCII)
PAGE = re.compile(
    r"(?:https?://)?(?:www\.)?github\.com/([^/#?\s]+/[^/#?\s]+)/(?:issues|pull)/([1-9][0-9]{0,8})"
    r"(?:[/#?]\S*)?",
    re.ASCII,
)


@contextmanager
def _database() -> Iterator[Engine]:
    engine = open_database(Settings())
    try:
        yield engine
    finally:
        engine.dispose()


def issue_place(text: str) -> tuple[str, int]:
    """`owner/name#35`, or the address of its page at GitHub, in its parts."""
    found = PLACE.fullmatch(text) or PAGE.fullmatch(text)
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


@watch_app.command("fork")
def watch_fork(name: ForkName) -> None:
    """Watch a found fork closely: its refs, releases and forks. Nothing of it is built.

    Example: forkscout watch fork some/dflash-llama.cpp
    """
    with _database() as database, writing(database) as session:
        is_new = fork_tiers.watch_fork(session, name)
    typer.echo(f"{'watching' if is_new else 'already watching'} {name}")


@watch_app.command("list")
def watch_list(as_json: AsJson = False) -> None:
    """Show the issues, pull requests and forks that are watched.

    Example: forkscout watch list
    """
    with _database() as database, reading(database) as session:
        rows = store.linked_issues(session)
        watched = fork_tiers.watched_forks(session)
    if as_json:
        keys = ("full_name", "number", "kind", "state", "title", "note", "moved_at")
        found = [{key: getattr(row, key) for key in keys} for row in rows]
        found += [
            {"full_name": row.full_name, "kind": "fork", "state": row.state} for row in watched
        ]
        typer.echo(json_text(found))
        return
    if not rows:
        typer.echo("no issue is watched: forkscout watch issue OWNER/NAME#NUMBER")
    for row in rows:
        line = f"{row.full_name}#{row.number}  {row.kind} {row.state}  {row.title}".rstrip()
        typer.echo(one_line(line))
        if row.note:
            typer.echo(one_line(f"  {row.note}"))
    for each in watched:
        state = f", {store.AWAY[each.state]}" if each.state in store.AWAY else ""
        typer.echo(one_line(f"{each.full_name}  fork{state}"))


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


@unwatch_app.command("fork")
def unwatch_fork(name: ForkName) -> None:
    """Watch a fork no closer than its pushes make it.

    Example: forkscout unwatch fork some/dflash-llama.cpp
    """
    with _database() as database, writing(database) as session:
        fork_tiers.unwatch_fork(session, name, now=clock.now())
    typer.echo(f"no longer watching {name}")
