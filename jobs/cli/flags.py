"""The command that tells what an engine understands, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from jobs.cli.desk import JSON_OPTION, open_desk
from jobs.config import Settings
from jobs.dialect.options import Difference, Option, difference
from jobs.screen import screen
from jobs.terminal import counted, json_text, printable
from jobs.understood import Understood, understood

app = typer.Typer()


@app.command()
def flags(
    engine: str = typer.Argument(help="engine, or ENGINE@REF for one commit, tag or branch"),
    diff: str = typer.Option("", metavar="OTHER", help="compare with this one: what it has more"),
    source: bool = typer.Option(False, "--source", help="read the source even where a build told"),
    as_json: bool = JSON_OPTION,
) -> None:
    """List what an engine understands: of its build, else of its source before anything is built.

    Example: `forkscout flags beellama@v0.1.2 --diff buun`
    """
    settings = Settings()
    with open_desk(settings) as desk:
        one = understood(desk, engine, source_only=source)
        other = understood(desk, diff, source_only=source) if diff else None
    if other is not None:
        _tell_difference(one, other, as_json)
    elif as_json:
        typer.echo(json_text({**_head(one), "options": [asdict(each) for each in one.options]}))
    else:
        _tell(one)


def _head(found: Understood) -> dict[str, Any]:
    return {
        "engine": found.engine,
        "label": found.label,
        "commit": found.commit,
        "build": found.build_id,
    }


def _tell(found: Understood) -> None:
    typer.echo(printable(found.basis))
    here = [option for option in found.options if not option.removed]
    table = Table(box=None, pad_edge=False)
    for name in ("option", "takes", "variable", "default"):
        table.add_column(name, overflow="fold")
    for section, options in groupby(here, key=lambda option: option.section):
        table.add_row(Text(printable(section or "other"), style="bold"))
        for option in options:
            table.add_row(*(Text(printable(cell)) for cell in _cells(option)))
    screen().print(table)
    gone = [name for option in found.options if option.removed for name in option.spellings]
    spellings = sum(len(option.spellings) for option in here)
    typer.echo(f"{counted(len(here), 'option')}, {counted(spellings, 'spelling')}")
    if gone:
        typer.echo(printable(f"removed, an error where they are used: {', '.join(gone)}"))


def _cells(option: Option) -> Iterator[str]:
    yield ", ".join(option.spellings)
    yield ", ".join(option.values) or option.hint
    yield ", ".join(option.env)
    yield option.default


def _tell_difference(one: Understood, other: Understood, as_json: bool) -> None:
    found = difference(one.options, other.options)
    if as_json:
        typer.echo(json_text({"from": _head(one), "to": _head(other), **asdict(found)}))
        return
    typer.echo(printable(f"from {one.basis}"))
    typer.echo(printable(f"to   {other.basis}"))
    for line in _lines(found):
        typer.echo(printable(line))


def _lines(found: Difference) -> Iterator[str]:
    if found.is_none:
        yield "both understand the same"
    yield from (f"+ {name}" for name in found.added)
    yield from (f"- {name}" for name in found.gone)
    for change in found.changed:
        yield f"~ {change.name}: {change.what}"
        yield from _moved(change.before.split(", "), change.after.split(", "))


def _moved(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    yield from (f"    + {word}" for word in after if word not in before)
    yield from (f"    - {word}" for word in before if word not in after)
