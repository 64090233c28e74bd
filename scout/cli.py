"""Commands to keep the watch list, to look around once, and to read what was seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlalchemy import Engine

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading, writing
from jobs.store import catalog
from jobs.submit import ring_for
from jobs.terminal import printable
from scout import events_cli, fit_cli, forks_cli, gguf_cli
from scout.family import as_tree, family_of
from scout.history import GitHistory
from scout.kinship import kindred
from scout.loading import apply
from scout.reading import load
from scout.rounds import ensure_watchlist, look_and_plan
from scout.watch import Summary

app = typer.Typer(no_args_is_help=True)
watchlist_app = typer.Typer(no_args_is_help=True, help="What is watched, built and benched.")
scout_app = typer.Typer(no_args_is_help=True, help="Look for what is new.")
app.add_typer(watchlist_app, name="watchlist")
app.add_typer(scout_app, name="scout")
app.add_typer(forks_cli.app)
app.add_typer(events_cli.app)
app.add_typer(fit_cli.app)
app.add_typer(gguf_cli.app)

File = Annotated[Path, typer.Argument(help="a TOML file, or a shipped list: demo, fork-chain")]
Replace = Annotated[bool, typer.Option(help="retire what this list does not name")]
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


@watchlist_app.command("check")
def check(file: File, as_json: AsJson = False) -> None:
    """Read a watch list without changing anything.

    Example: forkscout watchlist check fork-chain
    """
    watch_list = load(file)
    notes = watch_list.not_yet()
    if as_json:
        _say_json({"file": str(file), "ok": True, "not_yet": notes})
        return
    typer.echo(
        f"{file} is right (engines: {len(watch_list.engines)}, models: {len(watch_list.models)}, "
        f"stacks: {len(watch_list.stacks)})"
    )
    for note in notes:
        typer.echo(f"  {note}")


@watchlist_app.command("import")
def import_(file: File, replace: Replace = False, as_json: AsJson = False) -> None:
    """Add a watch list to what is watched.

    Example: forkscout watchlist import demo
    """
    watch_list = load(file)
    with _database() as database, writing(database) as session:
        changes = apply(session, watch_list, clock.now(), replace=replace)
    if as_json:
        _say_json(asdict(changes))
        return
    for word, names in (
        ("changed", changes.changed),
        ("retired", tuple(f"engine {name}" for name in changes.retired)),
        ("dropped", tuple(f"stack {name}" for name in changes.dropped)),
    ):
        for name in names:
            typer.echo(f"{word} {name}")
    for note in changes.not_yet:
        typer.echo(f"  {note}")
    if not (changes.changed or changes.retired or changes.dropped):
        typer.echo("nothing changed")


@watchlist_app.command("list")
def list_(as_json: AsJson = False) -> None:
    """Show what is watched.

    Example: forkscout watchlist list --json
    """
    with _database() as database, reading(database) as session:
        engines = [
            {
                "name": row.name,
                "family": row.family,
                "source": row.repo or row.package or "",
                "trust": row.trust,
                "rigs": ", ".join(str(target["rig"]) for target in row.targets),
                "revisions": len(catalog.revisions_of(session, row.id or 0)),
                "retired": row.retired,
            }
            for row in catalog.engines(session, retired=True)
        ]
        models = [{"name": row.name, "sha256": row.sha256} for row in catalog.model_files(session)]
        stacks = [
            {"name": row.name, "target": row.target, "scenarios": row.scenarios}
            for row in catalog.stacks(session)
        ]
    if as_json:
        _say_json({"engines": engines, "models": models, "stacks": stacks})
        return
    if not engines:
        typer.echo("nothing is watched yet: forkscout watchlist import demo")
        return
    table = Table("engine", "family", "source", "trust", "rigs", "revisions", box=None)
    for engine in engines:
        name = f"{engine['name']} (retired)" if engine["retired"] else engine["name"]
        rest = [engine[key] for key in ("family", "source", "trust", "rigs", "revisions")]
        table.add_row(*(Text(str(cell)) for cell in (name, *rest)))
    Console().print(table)
    typer.echo(f"models: {len(models)}, stacks: {len(stacks)}")


@scout_app.command("run")
def run(
    source: Annotated[
        str, typer.Option(help="only one source of GitHub: github_forks, github_releases, ...")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Look at every watched engine once, record what is new and queue what it asks for.

    Example: forkscout scout run --source github_forks
    """
    settings = Settings()
    if source:
        _look_at_github(settings, source, as_json=as_json)
        return
    with _database() as database:
        summary, jobs = look_and_plan(
            database,
            settings,
            on_look=lambda name: typer.echo(f"looking at {printable(name)} ...", err=True),
        )
        unserved = ring_for(settings, database, jobs)
    if as_json:
        _say_json({**_as_json(summary), "jobs": [job.id for job in jobs]})
    else:
        _tell(summary)
        for job in jobs:
            typer.echo(f"queued job {job.id}: {printable(job.title)}")
        if unserved:
            names = ", ".join(unserved)
            typer.echo(f"nobody serves {names} now; `forkscout up` starts the workers")
    if summary.troubles:
        raise typer.Exit(1)


def _look_at_github(settings: Settings, source: str, *, as_json: bool) -> None:
    from scout.github.desk import open_desk
    from scout.github.rounds import checked, look_around

    names = checked(source)
    with _database() as database:
        ensure_watchlist(database, settings)
        found = look_around(open_desk(database, settings), names, force=True)
    if as_json:
        _say_json(asdict(found))
    else:
        for happening in found.new:
            typer.echo(f"new: {happening.title}")
        for line in (*found.waiting, *found.troubles):
            typer.echo(line, err=True)
        typer.echo(f"looked at {found.looked} places with {found.requests} requests")
    if found.troubles or found.waiting:
        raise typer.Exit(1)


def _as_json(summary: Summary) -> dict[str, object]:
    return {
        "looked": {name: list(labels) for name, labels in summary.looked.items()},
        "new": [{"kind": news.kind, "key": news.key, "title": news.title} for news in summary.new],
        "troubles": [asdict(trouble) for trouble in summary.troubles],
        "unwatched": list(summary.unwatched),
    }


def _tell(summary: Summary) -> None:
    for name, labels in summary.looked.items():
        typer.echo(printable(f"{name}: {', '.join(labels) or 'nothing offered'}"))
    for news in summary.new:
        typer.echo(printable(f"new: {news.title}"))
    for name in summary.unwatched:
        typer.echo(f"{name}: its repository is not watched yet, bench a commit of it by hand")
    for trouble in summary.troubles:
        typer.echo(printable(f"{trouble.engine}: {trouble.message}"), err=True)
        if trouble.advice:
            typer.echo(printable(f"  {trouble.advice}"), err=True)
    if not summary.new:
        typer.echo("nothing new")


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
