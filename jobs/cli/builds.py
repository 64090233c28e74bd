"""Commands about builds: make one and watch it, list them, show how one came to be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from sqlalchemy import Engine

from jobs import submit
from jobs.cli.desk import JSON_OPTION, open_desk, say_unserved
from jobs.cli.following import LogTail, follow, phase_line, summary
from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.model import State
from jobs.screen import screen
from jobs.store import builds as store
from jobs.store import catalog
from jobs.store.builds import BuildLine, KnownBuild
from jobs.tables import JobRow
from jobs.terminal import json_text, printable

app = typer.Typer()
build_app = typer.Typer(invoke_without_command=True)
app.add_typer(build_app, name="build")

LOG_LINES = 15
NOTHING_YET = "nothing was built yet; `forkscout build --engine NAME` builds"


@build_app.callback()
def build(
    context: typer.Context,
    engine: str = typer.Option("", help="engine, as the watch list names it"),
    ref: str | None = typer.Option(None, help="commit, tag, branch or release; empty: the newest"),
    target: str | None = typer.Option(
        None, "--for", metavar="BUILD_TARGET", help="what it must run on; empty: this machine's rig"
    ),
    wait: bool = typer.Option(True, " /--no-wait", help="queue it and do not follow it"),
    as_json: bool = JSON_OPTION,
) -> None:
    """Build one revision and follow it: phases, their times, the end of the log.

    Ctrl-C ends the watching, not the build. Example: `forkscout build --engine buun --ref master`
    """
    if context.invoked_subcommand is not None:
        return
    if not engine:
        raise typer.BadParameter("which engine? Give its name", param_hint="--engine")
    settings = Settings()
    with open_desk(settings) as desk:
        done = submit.submit_build(desk, engine_name=engine, ref=ref, target=target or settings.rig)
    database = open_database(settings)
    if done.last is None:
        with reading(database) as session:
            found = store.with_identity(session, done.identity)
        _tell_built(found, as_json)
        return
    try:
        _watch(settings, database, done, wait=wait, as_json=as_json)
    except KeyboardInterrupt:
        number = done.last.id
        typer.echo(
            f"job {number} goes on without you: `forkscout logs {number} -f` follows its log, "
            f"`forkscout cancel {number}` ends it",
            err=True,
        )
        raise typer.Exit(130) from None


def _watch(
    settings: Settings, database: Engine, done: submit.Submitted, *, wait: bool, as_json: bool
) -> None:
    """Follow the job that was queued to its end, if somebody works on it and a person wants to."""
    job = done.jobs[-1]
    unserved = submit.ring_for(settings, database, done.jobs)
    if not as_json:
        typer.echo(f"job {job.id}: {printable(job.title)} ({job.state})")
        say_unserved(unserved)
    if not wait or unserved or job.state == State.BLOCKED:
        _tell_waiting(job, as_json)
        return
    job = follow(
        settings,
        database,
        job.id or 0,
        say=(lambda _line: None) if as_json else typer.echo,
        console=screen(stderr=True),
    )
    with reading(database) as session:
        found = store.of_job(session, job) if job.state == State.SUCCEEDED else None
    _tell_end(settings, job, found, as_json)


def _tell_built(found: KnownBuild | None, as_json: bool) -> None:
    if as_json:
        typer.echo(json_text({"job": None, "build": asdict(found) if found else None}))
        return
    where = f", build {found.id}: `forkscout build show {found.id}`" if found else ""
    typer.echo(f"nothing to do: this is already built{where}")


def _tell_waiting(job: JobRow, as_json: bool) -> None:
    if as_json:
        typer.echo(json_text({"job": summary(job), "build": None}))
    elif job.state == State.BLOCKED:
        for text in (job.message, job.advice):
            if text:
                typer.echo(f"  {printable(text)}")


def _tell_end(settings: Settings, job: JobRow, found: KnownBuild | None, as_json: bool) -> None:
    if as_json:
        typer.echo(json_text({"job": summary(job), "build": asdict(found) if found else None}))
    elif job.state == State.SUCCEEDED:
        typer.echo(printable(job.message))
        for name, text in _facts(found) if found else ():
            if name in ("artifact", "size", "compiler's cache", "options"):
                typer.echo(f"  {name}: {printable(text)}")
        if found:
            typer.echo(f"`forkscout build show {found.id}` tells how it was made")
    elif job.state != State.BLOCKED:
        cause = f" [{job.failure_class}]" if job.failure_class else ""
        typer.echo(f"{job.state}{cause}: {printable(job.message)}")
        if job.advice:
            typer.echo(f"  next: {printable(job.advice)}")
        for line in _log_lines(settings, job.id or 0):
            typer.echo(f"  | {line}")
    if job.state not in (State.SUCCEEDED, State.BLOCKED):
        raise typer.Exit(1)


def _log_lines(settings: Settings, job_id: int) -> list[str]:
    tail = LogTail()
    tail.look(settings.job_log(job_id))
    return tail.lines(LOG_LINES)


@app.command("builds")
def list_builds(
    engine: str = typer.Option("", help="only of this engine"),
    target: str = typer.Option("", "--for", metavar="BUILD_TARGET", help="only for this target"),
    state: Annotated[
        list[State] | None, typer.Option(help="only jobs in this state; may be repeated")
    ] = None,
    limit: int = typer.Option(50, min=1, max=1000, help="how many at most"),
    as_json: bool = JSON_OPTION,
) -> None:
    """List builds, newest first: finished, failed, running and waiting ones.

    Example: `forkscout builds --engine beellama --state failed`
    """
    with reading(open_database(Settings())) as session:
        engine_id = catalog.engine_named(session, engine).id if engine else None
        found = store.lines(
            session, engine_id=engine_id, target=target, states=state or (), limit=limit
        )
    if as_json:
        typer.echo(json_text([asdict(line) for line in found]))
        return
    if not found:
        typer.echo("no build is like that" if engine or target or state else NOTHING_YET)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("build", "job", "engine", "revision", "for", "state", "took", "size", "note"):
        table.add_column(name, overflow="fold")
    for line in found:
        table.add_row(*(Text(printable(cell)) for cell in _cells(line)))
    screen().print(table)


def _cells(line: BuildLine) -> Iterator[str]:
    yield str(line.build_id or "")
    yield str(line.job_id)
    yield from (line.engine, line.label, line.target)
    yield f"{line.state} [{line.failure_class}]" if line.failure_class else line.state
    yield "" if line.seconds is None else f"{line.seconds:.1f} s"
    yield "" if line.size_bytes is None else f"{line.size_bytes / 1e6:.1f} MB"
    yield str(line.cached) if line.cached else "" if line.build_id else line.message


@build_app.command("show")
def show(
    number: int = typer.Argument(metavar="BUILD", help="number of the build"),
    as_json: bool = JSON_OPTION,
) -> None:
    """Show how a build came to be: source, recipe, tools, phases, size, log.

    Example: `forkscout build show 3`
    """
    settings = Settings()
    with reading(open_database(settings)) as session:
        found = store.build(session, number)
    log = settings.job_log(found.job_id)
    if as_json:
        typer.echo(json_text({**asdict(found), "log": str(log) if log.exists() else None}))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, text in _facts(found):
        table.add_row(Text(name, style="bold"), Text(printable(text)))
    screen().print(f"build {found.id}", style="bold")
    screen().print(table)
    for phase in found.phases:
        typer.echo(printable(phase_line(phase)))
    for step in found.steps:
        typer.echo(printable(f"  $ {' '.join(map(_word, step))}"))
    if log.exists():
        typer.echo(f"`forkscout logs {found.job_id}` prints its log")


def _word(word: str) -> str:
    """One word of a command; a whole program would push everything else off the screen."""
    lines = word.strip().count("\n") + 1
    return word if lines == 1 else f"(a program of {lines} lines)"


def _facts(found: KnownBuild) -> Iterator[tuple[str, str]]:
    yield "engine", f"{found.engine} {found.label}"
    yield "source", f"{found.source} at {found.commit}"
    yield "for", found.target
    yield "recipe", found.recipe
    yield "artifact", found.artifact + (" (lost from the store)" if found.lost else "")
    if found.same_as is not None:
        yield "made as", f"build {found.same_as}, whose source is the same"
    yield "size", f"{found.size_bytes / 1e6:.1f} MB"
    yield "took", f"{found.duration_seconds:.1f} s"
    yield "compiler's cache", str(found.cached) if found.cached else "not asked"
    yield "options", "not kept" if found.options is None else str(found.options)
    yield "sandbox", found.sandbox
    yield "job", str(found.job_id)
    yield "made", f"{found.created_at:%Y-%m-%d %H:%M:%S} UTC"
    yield from sorted(found.tools.items())
