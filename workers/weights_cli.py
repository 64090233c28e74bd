"""Commands about the weights on this machine: what lies there, what goes in and what goes out."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.errors import UsageError
from jobs.store import weights as rows
from jobs.terminal import printable
from workers.weight_adding import add_file
from workers.weight_bringing import store_of
from workers.weight_states import WeightState, counted, state_now, state_when_it_came
from workers.weight_store import Entry, Store

app = typer.Typer()
weights_app = typer.Typer(invoke_without_command=True)
app.add_typer(weights_app, name="weights")

SHORTEST_SHA = 7
JSON_OPTION = typer.Option(False, "--json", help="print JSON")


@dataclass(frozen=True)
class Line:
    """One weight as it is shown."""

    sha256: str
    form: str
    size_bytes: int
    used_at: str
    models: tuple[str, ...]
    needed: bool
    asked_for: bool
    state: str


@weights_app.callback()
def weights(context: typer.Context) -> None:
    """The weights on this machine: list, add, verify, remove, prune.

    Example: `forkscout weights`
    """
    if context.invoked_subcommand is None:
        _show(as_json=False)


@weights_app.command("list")
def list_weights(as_json: bool = JSON_OPTION) -> None:
    """List what lies in the store, the least recently used first.

    Example: `forkscout weights list --json`
    """
    _show(as_json=as_json)


@weights_app.command()
def add(
    path: str = typer.Argument(help="a .gguf file on this machine"),
    name: str = typer.Option("", help="name of the model; empty: the file's name"),
    as_json: bool = JSON_OPTION,
) -> None:
    """Put a file of yours into the store; it is copied, and never pushed out by others.

    Example: `forkscout weights add ~/Downloads/tiny-Q4_K_M.gguf --name tiny:q4`
    """
    settings = Settings()
    database = open_database(settings)
    added = add_file(settings, database, Path(path), name=name)
    if as_json:
        typer.echo(json.dumps(asdict(added), indent=2))
        return
    typer.echo(f"{added.size_bytes:,} bytes, sha256 {added.sha256}")
    typer.echo(f"known as {', '.join(printable(each) for each in added.models)}")
    if name and name not in added.models:
        typer.echo(f"these bytes have a name already, so they are not called {printable(name)}")


@weights_app.command()
def verify(as_json: bool = JSON_OPTION) -> None:
    """Read every byte again; exits with 1 where a file is not what its digest says.

    Damaged files are only named: the next job that needs one fetches it anew.
    Example: `forkscout weights verify --json`
    """
    store = _store()
    found: dict[Entry, WeightState] = {}
    with reading(open_database(Settings())) as session:
        models = {entry: rows.rows_with(session, entry.sha256) for entry in store.entries()}
    for entry, known in models.items():
        with contextlib.suppress(FileNotFoundError):
            found[entry] = state_now(store, entry, known)
            if not as_json:
                typer.echo(f"{entry.sha256[:12]} {entry.form} {found[entry]}")
    if as_json:
        lines = [{**asdict(entry), "state": state} for entry, state in found.items()]
        typer.echo(json.dumps(lines, indent=2))
    else:
        typer.echo(counted(found.values()) or "no weights are here yet")
    if WeightState.MISMATCH in found.values():
        raise typer.Exit(1)


@weights_app.command()
def remove(sha: str = typer.Argument(help="sha256 of the weights, or its start")) -> None:
    """Remove one weight from the store; nothing that a job needs.

    Example: `forkscout weights remove a5fd3b6`
    """
    store = _store()
    found = [entry for entry in store.entries() if entry.sha256.startswith(sha.lower())]
    if len(sha) < SHORTEST_SHA or not found:
        raise UsageError(
            f"no weights {sha[:80]!r} here",
            advice=f"`forkscout weights` lists them; give {SHORTEST_SHA} digits or more",
        )
    if len({entry.sha256 for entry in found}) > 1:
        raise UsageError(f"{sha[:80]!r} means {len(found)} weights", advice="give more digits")
    for entry in found:
        if not store.remove(entry):
            raise UsageError(
                f"the weights {entry.sha256[:12]} are in use",
                advice="a job needs or reads them; see `forkscout jobs`",
            )
        typer.echo(f"removed {entry.sha256} ({entry.size_bytes:,} bytes)")
        _say_way_back(entry)


@weights_app.command()
def prune(
    yes: bool = typer.Option(False, "--yes", help="remove them; without it they are only named"),
    as_json: bool = JSON_OPTION,
) -> None:
    """Remove what no stack asks for and no job needs; names it first.

    What you added yourself stays. Example: `forkscout weights prune --yes`
    """
    store = _store()
    with reading(open_database(Settings())) as session:
        wanted = rows.cannot_go(session) | rows.asked_for(session)
    spare = [entry for entry in store.entries() if entry.sha256 not in wanted]
    gone = [entry for entry in spare if yes and store.remove(entry)]
    told = gone if yes else spare
    if as_json:
        typer.echo(json.dumps({"removed": yes, "weights": [asdict(each) for each in told]}))
        return
    for entry in told:
        word = "removed" if yes else "would remove"
        typer.echo(f"{word} the {entry.form} {entry.sha256} ({entry.size_bytes:,} bytes)")
    if not told:
        typer.echo("nothing to remove")
    elif not yes:
        typer.echo(f"{_megabytes(told)} in all; `forkscout weights prune --yes` removes them")


def _store() -> Store:
    settings = Settings()
    return store_of(settings, open_database(settings))


def _say_way_back(entry: Entry) -> None:
    with reading(open_database(Settings())) as session:
        for row in rows.rows_with(session, entry.sha256):
            if "repo" in row.source:
                place = "{repo}/{file}@{revision}".format_map({"revision": "main", **row.source})
                typer.echo(f"`forkscout submit fetch {_quoted(place)}` brings it back")
            elif row.source:
                typer.echo(f"the next job with {printable(row.name)} brings it back")
            else:
                typer.echo(
                    f"{printable(row.name)} has no source: only `weights add` brings it back"
                )


def _quoted(place: str) -> str:
    return shlex.quote(printable(place))


def _lines(store: Store) -> list[Line]:
    with reading(open_database(Settings())) as session:
        needed, asked = rows.needed(session), rows.asked_for(session)
        return [
            Line(
                sha256=entry.sha256,
                form=entry.form,
                size_bytes=entry.size_bytes,
                used_at=f"{datetime.fromtimestamp(entry.used_at, UTC):%Y-%m-%dT%H:%M:%SZ}",
                models=tuple(row.name for row in rows.rows_with(session, entry.sha256)),
                needed=entry.sha256 in needed,
                asked_for=entry.sha256 in asked,
                state=state_when_it_came(entry, rows.rows_with(session, entry.sha256)),
            )
            for entry in store.entries()
        ]


def _show(*, as_json: bool) -> None:
    store = _store()
    lines = _lines(store)
    if as_json:
        typer.echo(json.dumps([asdict(line) for line in lines], indent=2))
        return
    if not lines:
        typer.echo("no weights are here yet; `forkscout submit fetch` brings some")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("sha256", "what", "MB", "last used", "model", "wanted by", "state"):
        table.add_column(name, overflow="fold", justify="right" if name == "MB" else "left")
    for line in lines:
        wanted = "a job" if line.needed else "a stack" if line.asked_for else ""
        table.add_row(
            *(line.sha256[:12], line.form, f"{line.size_bytes / 1e6:,.1f}"),
            *(line.used_at[:16].replace("T", " "), Text(printable(", ".join(line.models))), wanted),
            line.state,
        )
    Console().print(table)
    limit = f" of {store.budget_bytes / 1e6:,.0f} MB" if store.budget_bytes else ""
    free = shutil.disk_usage(store.root).free
    typer.echo(f"{_megabytes(store.entries())}{limit}; {free / 1e6:,.0f} MB of the disk are free")
    typer.echo(counted(WeightState(line.state) for line in lines))


def _megabytes(entries: list[Entry]) -> str:
    return f"{sum(entry.size_bytes for entry in entries) / 1e6:,.1f} MB"
