"""Commands of this room: lineage here, the others in files of their own; they print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from sqlalchemy import Engine

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.store import catalog
from scout import events_cli, forks_cli, gguf_cli, models_cli, ranking_cli, run_cli, watchlist_cli
from scout.family import as_tree, family_of
from scout.history import GitHistory
from scout.kinship import kindred

app = typer.Typer(no_args_is_help=True)
app.add_typer(watchlist_cli.app, name="watchlist")
app.add_typer(run_cli.app, name="scout")
app.add_typer(forks_cli.app)
app.add_typer(ranking_cli.app)
app.add_typer(events_cli.app)
app.add_typer(gguf_cli.app)
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
    typer.echo(json.dumps(value, indent=2, default=str, allow_nan=False))


@app.command("lineage")
def lineage(engine: str, as_json: AsJson = False) -> None:
    """Show who an engine's chain descends from, how far apart they are and who took what.

    Example: forkscout lineage beellama
    """
    settings = Settings()
    with _database() as database, reading(database) as session:
        catalog.engine_named(session, engine)
        kin = kindred(session)
    descents = family_of(engine, kin, GitHistory(settings.network), now=clock.now())
    if as_json:
        _say_json([asdict(descent) for descent in descents])
        return
    Console().print(as_tree(descents, marked=engine))
