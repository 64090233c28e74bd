"""The command that brings a result file of another machine home."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from jobs import importing
from jobs.config import Settings
from jobs.db import database_now, open_database, writing
from jobs.terminal import json_text, one_line

app = typer.Typer()


@app.command("import")
def import_result(
    file: Annotated[Path, typer.Argument(help="what `forkscout bench --offline` wrote")],
    rig: Annotated[str, typer.Option("--rig", help="the name of the machine it was made on")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for programs")] = False,
) -> None:
    """Store the results of another machine; the same file again changes nothing.

    Each says on its page that it was imported and whether it ran in a sandbox.

    Example: forkscout import result.json --rig h200
    """
    document, sha256 = importing.load(file)
    settings = Settings()
    database = open_database(settings)
    try:
        with writing(database) as session:
            stored = importing.store(
                session,
                document,
                file_sha256=sha256,
                rig=rig,
                now=database_now(session),
                days=settings.negative_days,
            )
    finally:
        database.dispose()
    if as_json:
        typer.echo(json_text([asdict(each) for each in stored]))
        return
    for each in stored:
        said = each.sentence if each.is_new else "known already"
        place = f"result {each.result_id}: {each.scenario}, context {each.context_tokens}"
        typer.echo(f"{place}: {one_line(said)}")
    failed = sum(each.failure is not None for each in document.combinations)
    if failed:
        typer.echo(f"{failed} combinations of the file failed and left no result")
