"""The command that looks around once, and how a look is told; it decides nothing."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from jobs.config import Settings
from jobs.db import open_database
from jobs.submit import ring_for
from jobs.terminal import printable
from scout.glance import Glance, glance

app = typer.Typer(no_args_is_help=True, help="Look for what is new.")

SOURCE_HELP = (
    "only one source: packages, git, candidates, github (all of it), github_repositories, "
    "github_releases, github_pulls, github_issues, github_linked, github_forks, github_census, "
    "github_pushes, github_search, hf (all of the model hub), hf_lists, hf_repositories"
)


@app.callback()
def scout() -> None:
    """Look for what is new."""


@app.command("run")
def run(
    source: Annotated[str, typer.Option(help=SOURCE_HELP)] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for programs")] = False,
) -> None:
    """Look at every watched engine once, record what is new and queue what it asks for.

    Packages first, then git, then what is due on the model hub, and on GitHub where a token is
    set; a source that is named is looked at whether it is due or not.
    Example: forkscout scout run --source github_forks
    """
    settings = Settings()
    database = open_database(settings)
    try:
        seen = glance(
            database,
            settings,
            source,
            on_look=lambda name: typer.echo(f"looking at {printable(name)} ...", err=True),
        )
        unserved = ring_for(settings, database, list(seen.jobs))
    finally:
        database.dispose()
    if as_json:
        typer.echo(json.dumps(seen.as_json(), indent=2, default=str, allow_nan=False))
    else:
        _tell(seen)
        if unserved:
            names = ", ".join(unserved)
            typer.echo(f"nobody serves {names} now; `forkscout up` starts the workers")
    if not seen.went_well:
        raise typer.Exit(1)


def _tell(seen: Glance) -> None:
    for name, labels in seen.summary.looked.items():
        typer.echo(printable(f"{name}: {', '.join(labels) or 'nothing offered'}"))
    if seen.github is not None:
        found = seen.github
        typer.echo(f"GitHub: looked at {found.looked} places with {found.requests} requests")
    if seen.hub is not None:
        hub = seen.hub
        typer.echo(f"model hub: looked at {hub.looked} places with {hub.requests} requests")
    for each in seen.new:
        typer.echo(printable(f"new: {each['title']}"))
    for name in seen.summary.unwatched:
        typer.echo(f"{name}: its repository is not watched yet, bench a commit of it by hand")
    for trouble in seen.troubles:
        typer.echo(printable(f"{trouble['engine']}: {trouble['message']}"), err=True)
        if trouble["advice"]:
            typer.echo(printable(f"  {trouble['advice']}"), err=True)
    for line in (*seen.waiting, *seen.remarks):
        typer.echo(printable(line), err=True)
    if not seen.new:
        typer.echo("nothing new")
    for job in seen.jobs:
        typer.echo(f"queued job {job.id}: {printable(job.title)}")
