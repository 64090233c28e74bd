"""Commands of this room; what a worker does is asked for through the queue."""

from __future__ import annotations

import json

import typer

from jobs.config import Settings
from jobs.errors import ScoutError
from workers import bench_cli, weights_cli
from workers.cages import cage_advice, candidates, find_cage

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
