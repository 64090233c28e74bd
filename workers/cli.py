"""Commands of this room; what a worker does is asked for through the queue."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from jobs.config import Settings
from jobs.errors import ScoutError
from jobs.terminal import one_line
from workers import bench_cli, weights_cli
from workers.cages import cage_advice, candidates, find_cage
from workers.doctor import BAD, examine

app = typer.Typer()
app.add_typer(weights_cli.app)
app.add_typer(bench_cli.app)


@app.command()
def sandbox(*, as_json: bool = typer.Option(False, "--json", help="print facts as JSON")) -> None:
    """Prove the sandbox of this machine, as a worker does at its start.

    Example: `forkscout sandbox`
    """
    settings = Settings()
    cage = find_cage(candidates(settings.sandbox, settings.docker_host))
    limits = cage.sandbox.enforced()
    if as_json:
        facts = {
            "holds": not cage.faults,
            "sandbox": "" if cage.faults else cage.sandbox.name,
            "faults": list(cage.faults),
            "limits": {"by": limits.by, "faults": list(limits.faults), "notes": list(limits.notes)},
        }
        typer.echo(json.dumps(facts, indent=2))
    if cage.faults:
        raise ScoutError(
            "; ".join(cage.faults), advice=f"{cage_advice()} Then run this command again."
        )
    if not as_json:
        typer.echo(
            f"{cage.sandbox.name} holds: no network, no secret readable, nothing written outside"
        )
        typer.echo(f"limits: memory and processes by {limits.by}")
        for note in limits.notes:
            typer.echo(f"note: {note}")


@app.command()
def doctor(*, as_json: bool = typer.Option(False, "--json", help="print facts as JSON")) -> None:
    """Look whether this machine can do its work, and say what to do where it cannot.

    Exit code 1 where something is bad. Example: `forkscout doctor`
    """
    found = []
    for each in examine(Settings()):
        found.append(each)
        if not as_json:
            typer.echo(one_line(f"{each.state}: {each.name}: {each.says}"))
            if each.advice:
                typer.echo(one_line(f"  next: {each.advice}"))
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in found], indent=2))
    raise typer.Exit(1 if any(each.state == BAD for each in found) else 0)
