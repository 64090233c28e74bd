"""The command that looks around once, and how a look is told; it decides nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from jobs.config import Settings
from jobs.db import open_database
from jobs.submit import ring_for
from jobs.terminal import counted, json_text, printable
from scout import status_cli
from scout.github.rounds import Round
from scout.glance import Glance, glance
from scout.hub.rounds import HubRound

app = typer.Typer(no_args_is_help=True, help="Look for what is new.")
app.add_typer(status_cli.app)

SOURCE_HELP = (
    "one source and what it builds on: packages, git, candidates, github (all of it), "
    "github_repositories, github_releases, github_pulls, github_issues, github_linked, "
    "github_forks, github_census, github_pushes, github_search, "
    "hf (all of the model hub), hf_lists, hf_repositories"
)
_OF_SERVICE = re.compile(r".* \(((?:github|hf)_\w+)\)")


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
    set; a source that is named is looked at whether it is due or not. What GitHub's sources ask
    about is told by github_repositories, and what github_forks and github_pushes tell by
    github_census too, so these come first. Example: forkscout scout run --source github_forks
    """
    settings = Settings()
    database = open_database(settings)
    try:
        with _progress() as on_look:
            seen = glance(database, settings, source, on_look=on_look, on_note=_note)
        unserved = ring_for(settings, database, list(seen.jobs))
    finally:
        database.dispose()
    if as_json:
        typer.echo(json_text(seen.as_json()))
    else:
        _tell(seen)
        if unserved:
            names = ", ".join(unserved)
            typer.echo(f"nobody serves {names} now; `forkscout up` starts the workers")
    if not seen.went_well:
        raise typer.Exit(1)


def _note(text: str) -> None:
    typer.echo(printable(text), err=True)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """On a terminal one line that changes; elsewhere a line for each engine and each source."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("looking around ...") as status:
            yield lambda name: status.update(Text(f"looking at {printable(name)} ..."))
        return
    told: set[str] = set()

    def tell(name: str) -> None:
        found = _OF_SERVICE.fullmatch(name)
        what = found[1] if found else "candidates" if "/" in name else printable(name)
        if what not in told:
            told.add(what)
            _note(f"looking at {what} ...")

    yield tell


def _asked(found: Round | HubRound) -> str:
    """How many looks were answered; a place may need several: list, files, headers."""
    if not found.looked and found.unanswered:
        return f"{counted(found.unanswered, 'look')}, none answered"
    looks = f"{counted(found.looked, 'look')} with {counted(found.requests, 'request')}"
    silent = f", {found.unanswered} more gave no answer" if found.unanswered else ""
    return f"{looks}{silent}"


def _tell(seen: Glance) -> None:
    for name, labels in seen.summary.looked.items():
        typer.echo(printable(f"{name}: {', '.join(labels) or 'nothing offered'}"))
    if seen.github is not None:
        typer.echo(f"GitHub: {_asked(seen.github)}")
    if seen.hub is not None:
        typer.echo(f"model hub: {_asked(seen.hub)}")
    for each in seen.new:
        typer.echo(printable(f"new: {each['title']}"))
    for name in seen.summary.unwatched:
        typer.echo(f"{name}: its repository is not watched yet, bench a commit of it by hand")
    for trouble in seen.troubles:
        _note(f"{trouble['engine']}: {trouble['message']}")
        if trouble["advice"]:
            _note(f"  next: {trouble['advice']}")
    for sources, why, advice in seen.waits:
        _note(f"{sources}: {why}")
        if advice:
            _note(f"  next: {advice}")
    for line in seen.remarks:
        _note(line)
    if not seen.new:
        typer.echo("nothing new")
    for job in seen.jobs:
        typer.echo(f"queued job {job.id}: {printable(job.title)}")
