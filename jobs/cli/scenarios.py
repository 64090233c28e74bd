"""Commands that tell what a server can be asked: the shipped scenarios and those of a file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from jobs import own_scenarios
from jobs.scenarios import SHIPPED, Scenario, scenario_named
from jobs.screen import screen
from jobs.terminal import json_text, printable

app = typer.Typer()
scenarios_app = typer.Typer(help="What is asked of a server: prompt, length, sampling, version.")
app.add_typer(scenarios_app, name="scenarios")

JSON_OPTION = typer.Option(False, "--json", help="print JSON")
FILE_OPTION = typer.Option(None, "--file", help="a TOML file of [[scenario]] tables beside ours")


@scenarios_app.callback(invoke_without_command=True)
def scenarios(
    context: typer.Context, file: Path | None = FILE_OPTION, as_json: bool = JSON_OPTION
) -> None:
    """List every scenario, ours and those of a file; a wrong file is refused with its line.

    Example: `forkscout scenarios --file mine.toml`
    """
    if context.invoked_subcommand is not None:
        return
    known = {**SHIPPED, **_of(file)}
    if as_json:
        typer.echo(json_text([_told(each) for each in known.values()]))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("scenario", "tokens", "runs x boots", "asks"):
        table.add_column(name, overflow="fold")
    for each in known.values():
        cells = (each.key, str(each.tokens), f"{each.runs} x {each.boots}", _asks(each))
        table.add_row(*(Text(printable(cell)) for cell in cells))
    screen().print(table)


@scenarios_app.command("show")
def show(
    name: str = typer.Argument(help="the scenario's name"),
    file: Path | None = FILE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Show everything one scenario asks, and the digest its version stands for.

    Example: `forkscout scenarios show decode-800`
    """
    told = _told(scenario_named(name, _of(file)))
    if as_json:
        typer.echo(json_text(told))
        return
    prompt = told.pop("prompt")
    for key, value in told.items():
        typer.echo(f"{key}: {printable(str(value))}")
    typer.echo(f"\n{printable(prompt)}" if prompt else "\n(text is made at run time)")


def _of(file: Path | None) -> dict[str, Scenario]:
    return own_scenarios.load(file) if file is not None else {}


def _told(scenario: Scenario) -> dict[str, Any]:
    return {"key": scenario.key, "digest": scenario.digest, **asdict(scenario)}


def _asks(scenario: Scenario) -> str:
    parts = [scenario.endpoint, f"temperature {scenario.temperature:g}"]
    if scenario.depths:
        parts.append(f"{len(scenario.depths)} depths to {max(scenario.depths):,} tokens")
    if scenario.filled_tokens:
        parts.append(f"{scenario.filled_tokens:,} tokens filled")
    if scenario.thinking:
        parts.append("thinking")
    if scenario.picture:
        parts.append(f"a picture, answered with {scenario.names!r}")
    return ", ".join(parts)
