"""Commands about what was found on the model hub: list it, show one repository; they print."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.errors import UsageError, did_you_mean
from jobs.fit.amounts import in_words
from jobs.gguf.file_names import shard_of
from jobs.sightings import HubFileRow, HubRepositoryRow
from jobs.store import hub, hub_models
from jobs.terminal import printable, sound

app = typer.Typer(help="Show what was found on the model hub.")

SHOWN_ROLES = ("target", "drafter", "mmproj", "mtp_head")
MOST_SHOWN = 500
NOTHING = "nothing was found on the model hub: watch a place with [[models]] in the watch list"

AsJson = Annotated[bool, typer.Option("--json", help="print JSON for programs")]


@app.callback(invoke_without_command=True)
def models(
    context: typer.Context,
    role: Annotated[str, typer.Option(help="only one role: target, drafter, mmproj")] = "",
    as_json: AsJson = False,
) -> None:
    """List the models that were found on the hub, the newest first.

    Example: forkscout models --role drafter
    """
    if context.invoked_subcommand:
        return
    if role and role not in SHOWN_ROLES:
        raise UsageError(f"no role {role[:40]!r}", advice=did_you_mean(role, SHOWN_ROLES))
    database = open_database(Settings())
    try:
        with reading(database) as session:
            found = hub.found_models(session, (role,) if role else SHOWN_ROLES, limit=MOST_SHOWN)
    finally:
        database.dispose()
    lines = _once([_as_json(file, repo) for file, repo in found if not role or file.role == role])
    if as_json:
        _say_json(lines)
        return
    if not lines:
        typer.echo(NOTHING)
        return
    _print(lines)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="OWNER/REPO")], as_json: AsJson = False
) -> None:
    """Show one repository of the hub and its model files with what their headers say.

    Example: forkscout models show spiritbuun/Qwen3.6-27B-DFlash-GGUF
    """
    name = sound(name)
    database = open_database(Settings())
    try:
        with reading(database) as session:
            rows = hub.repositories_named(session, name)
            if not rows:
                raise UsageError(
                    f"no repository {name[:80]!r} was found",
                    advice=did_you_mean(name, hub.repository_names(session)),
                )
            repo = rows[0]
            files = [each for each in hub.files(session, repo.id or 0) if each.role]
            faults = hub_models.faults(session, repo.id or 0)
    finally:
        database.dispose()
    lines = [
        {**_as_json(file, repo), "facts": file.facts, "fault": faults.get(file.path, "")}
        for file in files
    ]
    about = _about(repo)
    if as_json:
        _say_json({**about, "refused": repo.refused, "files": lines})
        return
    for key, value in about.items():
        if value not in ("", [], None):
            said = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            typer.echo(f"{key.replace('_', ' ')}: {_one_line(said)}")
    _print(lines)
    for line in lines:
        if line["fault"]:
            typer.echo(_one_line(f"{line['path']}: {line['fault']}"))
    for each in repo.refused:
        typer.echo(_one_line(f"refused {each['path']}: {each['why']}"))


def _once(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same bytes are one model: one place is listed, the others stand beside it.

    It is the newest place whose header was read, else the newest.
    """
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        place = f"{line['repo']}/{line['path']}"
        key = line["sha256"] or place
        first = found.get(key)
        if first is None:
            found[key] = {**line, "also": []}
        elif line["read"] and not first["read"]:
            found[key] = {**line, "also": [f"{first['repo']}/{first['path']}", *first["also"]]}
        else:
            first["also"].append(place)
    return list(found.values())


def _about(repo: HubRepositoryRow) -> dict[str, Any]:
    return {
        "repo": repo.full_name,
        "hub_id": repo.hub_id,
        "sha": repo.sha,
        "state": "disabled" if repo.disabled else repo.state,
        "gated": repo.gated,
        "base_models": repo.base_models,
        "min_engine_refs": repo.engine_refs,
        "found_by": repo.watches,
        "last_modified": repo.last_modified,
        "first_seen_at": repo.first_seen_at,
        "last_seen_at": repo.last_seen_at,
    }


def _as_json(file: HubFileRow, repo: HubRepositoryRow) -> dict[str, Any]:
    facts = file.facts
    return {
        "role": file.role,
        "repo": repo.full_name,
        "path": file.path,
        "quant": file.quantisation,
        "arch": facts.get("arch") or "",
        "dialect": facts.get("dialect") or "",
        "size_bytes": file.size_bytes,
        "sha256": file.sha256,
        "read": bool(facts),
        "unread": file.unread,
        "since": file.first_seen_at,
    }


def _sets(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The files of a set as one line with their sizes added, as a person thinks of them."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        path = PurePosixPath(line["path"])
        shard = shard_of(path.name)
        if shard is None or shard.count == 1:
            found[line["repo"], line["path"]] = line
            continue
        key = line["repo"], str(path.with_name(f"{shard.stem}-of-{shard.count}"))
        whole = found.setdefault(key, {**line, "size_bytes": 0, "parts": [], "also": []})
        whole["parts"].append(shard.number)
        whole["size_bytes"] += line["size_bytes"] or 0
        whole["read"] = whole["read"] or line["read"]
        there = len(set(whole["parts"]))
        files = f"{there} files" if there == shard.count else f"{there} of {shard.count} files"
        whole["path"] = f"{path.with_name(shard.stem)} ({files})"
    return list(found.values())


def _print(lines: list[dict[str, Any]]) -> None:
    table = Table(box=None)
    for name in ("role", "repository", "file", "quant", "dialect", "size", "since"):
        table.add_column(name, overflow="fold")
    for line in _sets(lines):
        role = line["role"] if line["read"] else f"{line['role']}?"
        names = [line["path"], *(f"also {each}" for each in line.get("also", ()))]
        size = "" if line["size_bytes"] is None else in_words(line["size_bytes"])
        rest = (line["quant"], line["dialect"], size, _day(line["since"]))
        table.add_row(
            *(Text(_one_line(cell)) for cell in (role, line["repo"])),
            Text("\n".join(_one_line(each) for each in names)),
            *(Text(_one_line(cell)) for cell in rest),
        )
    Console().print(table)


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _say_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2, default=str, allow_nan=False))
