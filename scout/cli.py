"""Commands of this room: lineage here, the others in files of their own; they print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from sqlalchemy import Engine
from sqlmodel import Session

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.errors import UsageError
from jobs.screen import screen
from jobs.store import catalog, forks
from jobs.terminal import json_text, one_line
from scout import (
    events_cli,
    fit_cli,
    forks_cli,
    gguf_cli,
    models_cli,
    ranking_cli,
    run_cli,
    twin_cli,
    watchlist_cli,
)
from scout.family import as_tree, family_of
from scout.history import GitHistory
from scout.kinship import Kin, kindred
from scout.lineage import Descent

app = typer.Typer(no_args_is_help=True)
app.add_typer(watchlist_cli.app, name="watchlist")
app.add_typer(run_cli.app, name="scout")
app.add_typer(forks_cli.app)
app.add_typer(ranking_cli.app)
app.add_typer(events_cli.app)
app.add_typer(fit_cli.app)
app.add_typer(gguf_cli.app)
app.add_typer(twin_cli.app)
app.add_typer(models_cli.app, name="models")

AsJson = Annotated[bool, typer.Option("--json", help="print JSON for programs")]


@contextmanager
def _database() -> Iterator[Engine]:
    engine = open_database(Settings())
    try:
        yield engine
    finally:
        engine.dispose()


def _say_json(value: object) -> None:
    typer.echo(json_text(value))


def _away(session: Session, kin: Mapping[str, Kin]) -> dict[str, str]:
    """What GitHub says of repositories that nobody can see there, by engine."""
    rows = forks.repositories(session, states=tuple(forks.AWAY))
    found = {row.id: f"{row.full_name} {forks.AWAY[row.state]}" for row in rows}
    return {name: found[one.repository] for name, one in kin.items() if one.repository in found}


def _notes(descents: Sequence[Descent], away: Mapping[str, str]) -> Iterator[str]:
    """Who is away, and what the signs mean, or why there are none."""
    for descent in descents:
        if descent.engine in away:
            yield f"{descent.engine}: {away[descent.engine]}; its history is as it was last seen"
    if len(descents) > 1:
        yield "+N -M: commits ahead of and behind upstream, or the fork that is named"
        return
    yield "alone in its chain: neither its upstream nor a fork of it is watched"
    yield "to watch one: forkscout watchlist add OWNER/NAME"


@app.command("lineage")
def lineage(engine: str, as_json: AsJson = False) -> None:
    """Show who an engine's chain descends from, how far apart they are and who took what.

    Example: forkscout lineage beellama
    """
    settings = Settings()
    with _database() as database, reading(database) as session:
        row = catalog.engine_named(session, engine)
        if row.repo is None:
            raise UsageError(
                f"{engine} is a package and has no lineage",
                advice="chains are of repositories: forkscout watchlist list names them",
            )
        kin = kindred(session)
        away = _away(session, kin)
    descents = family_of(engine, kin, GitHistory(settings.network), now=clock.now())
    if as_json:
        _say_json([asdict(descent) for descent in descents])
        return
    screen().print(as_tree(descents, marked=engine))
    for line in _notes(descents, away):
        typer.echo(one_line(line))
