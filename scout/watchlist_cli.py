"""Commands to keep the watch list: check, import, list, add, remove; they print, others decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from sqlalchemy import Engine
from sqlalchemy.engine import make_url

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading, writing
from jobs.git_names import is_pull
from jobs.screen import screen
from jobs.sightings import RepositoryRow
from jobs.store import catalog, hub, rules
from jobs.store.refs import repositories_of_engines
from jobs.tables import EngineRow
from jobs.terminal import json_text, one_line
from scout import adding
from scout.known import NOTHING, Known
from scout.loading import apply, known_here
from scout.reading import load
from scout.rounds import ensure_watchlist
from scout.watchlist import WatchList

app = typer.Typer(no_args_is_help=True, help="What is watched, built and benched.")

LOOK_NOW = "now: forkscout scout run"
"""An entry alone looks at nothing; `forkscout up` looks by itself."""

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


def _known_already(*, replaced: bool = False) -> Known:
    """What is known here; nothing where there is no database yet, which no reading makes."""
    url = make_url(Settings().resolved_database_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        return NOTHING
    with _database() as database, reading(database) as session:
        return known_here(session, replaced=replaced)


def _built_on(watch_list: WatchList, watched: Mapping[str, str | None]) -> Iterator[str]:
    """Parents that the list itself does not name, and that it may name because they are watched."""
    names = {engine.name for engine in watch_list.engines}
    for engine in watch_list.engines:
        if engine.parent in watched.keys() - names:
            yield f"parent {engine.parent} of {engine.name} is not in this list; it is watched here"


def _keep_up(database: Engine, settings: Settings) -> None:
    """A configured list comes first, so that a change by hand is one to what it says."""
    if settings.watchlist is not None:
        ensure_watchlist(database, settings)


def _say_json(value: object) -> None:
    typer.echo(json_text(value))


@app.command("check")
def check(file: File, as_json: AsJson = False) -> None:
    """Read a watch list without changing anything.

    Example: forkscout watchlist check fork-chain
    """
    known = _known_already()
    watch_list = load(file, known)
    notes = [*_built_on(watch_list, known.parents), *watch_list.not_yet(known)]
    if as_json:
        _say_json({"file": str(file), "ok": True, "not_yet": notes})
        return
    typer.echo(
        f"{file} is right (engines: {len(watch_list.engines)}, models: {len(watch_list.models)}, "
        f"stacks: {len(watch_list.stacks)}, places of the hub: {len(watch_list.hub_watches)}, "
        f"rules: {len(watch_list.rules)}, budgets: {len(watch_list.budgets)})"
    )
    for note in notes:
        typer.echo(f"  {note}")


@app.command("import")
def import_(file: File, replace: Replace = False, as_json: AsJson = False) -> None:
    """Add a watch list to what is watched.

    Example: forkscout watchlist import demo
    """
    watch_list = load(file, _known_already(replaced=replace))
    with _database() as database, writing(database) as session:
        changes = apply(session, watch_list, clock.now(), replace=replace)
    if as_json:
        _say_json(asdict(changes))
        return
    for names, became in (
        (changes.new, "is new"),
        (changes.changed, "changed"),
        (tuple(f"engine {name}" for name in changes.retired), "is no longer watched"),
        (tuple(f"place {name}" for name in changes.unwatched), "is no longer watched"),
        (tuple(f"stack {name}" for name in changes.dropped), "is no longer benched"),
    ):
        for name in names:
            typer.echo(f"{name} {became}")
    for note in changes.not_yet:
        typer.echo(f"  {note}")
    if not (
        changes.new or changes.changed or changes.retired or changes.dropped or changes.unwatched
    ):
        typer.echo("nothing changed")
    elif changes.new or changes.changed:
        typer.echo(LOOK_NOW)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """Show what is watched.

    Example: forkscout watchlist list --json
    """
    with _database() as database, reading(database) as session:
        called = repositories_of_engines(session)
        engines: list[dict[str, Any]] = [
            {
                "name": row.name,
                "family": row.family,
                "source": row.repo or row.package or "",
                "pulls": [branch for branch in row.branches if is_pull(branch)],
                "called_now": _called_now(row, called),
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
        known_rules = [
            {"name": row.name, "on": row.asked, "do": row.does, "only": row.only}
            for row in rules.rules(session)
        ]
        budgets = [
            {"name": row.name, "hours_per_day": row.hours_per_day} for row in rules.budgets(session)
        ]
        places = [{"watch": row.watch, "roles": row.roles} for row in hub.watches(session)]
    if as_json:
        told = {"engines": engines, "models": models, "stacks": stacks, "places": places}
        _say_json({**told, "rules": known_rules, "budgets": budgets})
        return
    if not (engines or places or known_rules or budgets):
        typer.echo(catalog.NOTHING_WATCHED)
        return
    table = Table("engine", "family", "source", "trust", "rigs", "revisions", box=None)
    for engine in engines:
        name = f"{engine['name']} (retired)" if engine["retired"] else engine["name"]
        source = " ".join([str(engine["source"]), *engine["pulls"]])
        if engine["called_now"]:
            source = f"{source} (called {engine['called_now']} now)"
        rest = [engine[key] for key in ("trust", "rigs", "revisions")]
        rest = [engine["family"], source, *rest]
        table.add_row(*(Text(one_line(str(cell))) for cell in (name, *rest)))
    screen().print(table)
    typer.echo(
        f"models: {len(models)}, stacks: {len(stacks)}, "
        f"rules: {len(known_rules)}, budgets: {len(budgets)}"
    )
    for place in places:
        typer.echo(one_line(f"{place['watch']} ({', '.join(place['roles'])})"))


def _called_now(row: EngineRow, places: Mapping[int, RepositoryRow]) -> str | None:
    """The name its repository has today, where that is not what the watch list calls it."""
    place = places.get(row.id or 0)
    if row.repo is None or place is None or place.full_name.lower() == row.repo.lower():
        return None
    return place.full_name


@app.command("add")
def add(
    repo: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="as GitHub spells it")],
    name: Annotated[str, typer.Option(help="its name here; default: the repository's")] = "",
    parent: Annotated[
        str, typer.Option(help="the engine it comes from; default: as GitHub says")
    ] = "",
    branch: Annotated[
        list[str] | None, typer.Option(help="a branch to build; default: its default one")
    ] = None,
    family: Annotated[str, typer.Option(help="how it is built, started and read")] = "",
    trust: Annotated[
        str,
        typer.Option(help="auto, approve or never built; default: approve"),
    ] = "",
    via: Annotated[str, typer.Option(help="also build it, this way: cmake")] = "",
    rig: Annotated[str, typer.Option(help="the rig to build it for; default: this machine's")] = "",
    cuda_arch: Annotated[str, typer.Option(help="with --via: a CUDA architecture as 120")] = "",
    option: Annotated[
        list[str] | None, typer.Option(help="with --via: one option of the build")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Watch one more repository, and print the TOML that keeps it in a list.

    What is said beside the TOML goes to the error stream, so that it can be kept in a file.

    Example: forkscout watchlist add Anbeeld/beellama.cpp --parent buun --branch main > bee.toml
    """
    settings = Settings()
    wish = adding.Wish(
        repo=repo,
        name=name,
        parent=parent,
        branches=tuple(branch or ()),
        family=family,
        trust=trust,
        via=via,
        rig=rig,
        cuda_arch=cuda_arch,
        options=tuple(option or ()),
    )
    with _database() as database:
        _keep_up(database, settings)
        with writing(database) as session:
            added = adding.add(session, wish, this_rig=settings.rig, now=clock.now())
    if as_json:
        _say_json(asdict(added))
        return
    typer.echo(f"{'watching again' if added.revived else 'watching'} {added.name}", err=True)
    for note in added.not_yet:
        typer.echo(f"  {note}", err=True)
    typer.echo(LOOK_NOW, err=True)
    typer.echo("to keep it in a watch list of your own:\n", err=True)
    typer.echo(added.toml)


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="the engine, as `watchlist list` calls it")],
    as_json: AsJson = False,
) -> None:
    """Watch an engine no longer; its results stay, and `watchlist add` brings it back.

    Example: forkscout watchlist remove beellama
    """
    settings = Settings()
    with _database() as database:
        _keep_up(database, settings)
        with writing(database) as session:
            known = known_here(session)
            repo = adding.remove(session, name)
    kept_in = adding.named_in(settings.watchlist, name, known)
    if as_json:
        _say_json({"removed": name, "repo": repo, "still_in": kept_in})
        return
    typer.echo(f"no longer watching {name}")
    if kept_in:
        typer.echo(f"{kept_in} still names it and is read before every look: take it out there")
