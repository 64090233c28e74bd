"""Commands of this room; what a worker does is asked for through the queue."""

from __future__ import annotations

import typer

from jobs.errors import ScoutError
from workers import bench_cli, weights_cli
from workers.bubblewrap import Bubblewrap
from workers.proof import prove

app = typer.Typer()
app.add_typer(weights_cli.app)
app.add_typer(bench_cli.app)


@app.command()
def sandbox() -> None:
    """Prove the sandbox of this machine, as a worker does at its start.

    Example: `forkscout sandbox`
    """
    faults = prove(Bubblewrap())
    if faults:
        raise ScoutError(
            "; ".join(faults), advice="apt install bubblewrap, then run this command again"
        )
    typer.echo("bubblewrap holds: no network, no secret readable, nothing written outside")
