"""Commands that run the system: demo, up, and the single processes they consist of."""

from __future__ import annotations

import typer
from rich.console import Console

from jobs import demo as demo_run
from jobs import up as up_run
from jobs import worker as worker_run
from jobs.config import Settings
from jobs.db import open_database
from jobs.queue import make_app

app = typer.Typer()


@app.command()
def demo() -> None:
    """Run the main job once and end: watch, build, bench, judge, publish.

    Needs no GPU, no token and no account. Example: `forkscout demo`
    """
    raise typer.Exit(demo_run.run(Settings(), Console()))


@app.command()
def up() -> None:
    """Keep everything running, with the site on its port, until Ctrl-C.

    Example: `FORKSCOUT_PORT=9000 forkscout up`
    """
    settings = Settings()
    console = Console()
    settings.prepare()
    with up_run.only_one(settings):
        open_database(settings).dispose()
        up_run.check_port(settings)
        asked = up_run.stop_on_signals()
        with up_run.running(settings) as supervisor:
            supervisor.watch(lambda: asked.is_set() or up_run.site_answers(settings))
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            console.print(f"forkscout is up: http://{host}:{settings.port}", markup=False)
            console.print("Ctrl-C drains and stops everything.", style="dim")
            supervisor.watch(asked.is_set)
            console.print("draining ...")
    console.print("everything has stopped.")


@app.command()
def worker(
    queue: str = typer.Argument(help="scout, build, publish, or bench.RIG"),
) -> None:
    """Run one worker of one queue.

    Example: `forkscout worker bench.cpu`
    """
    worker_run.run(Settings(), queue)


@app.command()
def beat() -> None:
    """Run the clock that rings; the schedules themselves are rows.

    Example: `forkscout beat`
    """
    settings = Settings()
    settings.prepare()
    schedule = settings.root / "beat-schedule"
    celery = make_app(settings)
    celery.Beat(schedule=str(schedule), loglevel="WARNING", quiet=True).run()


@app.command()
def migrate() -> None:
    """Bring the database to the newest schema.

    Example: `forkscout migrate`
    """
    open_database(Settings()).dispose()
    typer.echo("the database is up to date")
