"""Commands that change jobs or follow them: submit, cancel, retry, the log."""

from __future__ import annotations

import time

import typer

from jobs import submit
from jobs.cli.desk import JSON_OPTION, open_desk, say_unserved
from jobs.cli.listing import job_json
from jobs.cli.log_reading import LogReader
from jobs.config import Settings
from jobs.db import database_now, open_database, reading, writing
from jobs.errors import UsageError
from jobs.lifecycle import LIVE
from jobs.model import State
from jobs.resolving import Desk
from jobs.scenarios import DEFAULT_SCENARIO
from jobs.store import scenarios
from jobs.store import work as store
from jobs.store.needs import dependents_of
from jobs.submit import Submitted
from jobs.terminal import counted, json_text, one_line, printable

app = typer.Typer()
submit_app = typer.Typer(
    no_args_is_help=True, help="Queue a job by hand; it goes before everything planned."
)
app.add_typer(submit_app, name="submit")

DEPTH_OPTION = typer.Option(
    None, min=1, help="depth of a ladder in tokens, as often as wanted; empty: its own"
)
FOLLOW_SECONDS = 0.3
MOST_NUMBERS = 12


@submit_app.command("bench")
def submit_bench(
    engine: str = typer.Option("", help="engine, as the watch list names it"),
    stack: str = typer.Option("", help="stack of the watch list; it names engine, files, intents"),
    ref: str | None = typer.Option(None, help="commit, tag, branch or release; empty: the newest"),
    rig: str | None = typer.Option(None, help="rig; empty: this machine's"),
    target: str | None = typer.Option(None, help="model file; empty: the stack's"),
    drafter: str | None = typer.Option(None, help="model file that drafts beside it"),
    projector: str | None = typer.Option(None, help="mmproj file loaded beside it"),
    scenario: str = typer.Option(DEFAULT_SCENARIO, help="what is asked of the server"),
    context: int | None = typer.Option(None, min=256, help="allocated context in tokens"),
    depth: list[int] | None = DEPTH_OPTION,
    against: str | None = typer.Option(
        None, help="revision, or result:NUMBER, that is booted in turns with it: A, B, A, B"
    ),
    runs: int | None = typer.Option(None, min=1, max=1000, help="measured requests a boot"),
    boots: int | None = typer.Option(None, min=1, max=100, help="starts of the server"),
    as_json: bool = JSON_OPTION,
) -> None:
    """Build one revision and bench it.

    A ladder is one job for each depth that the context has room for.
    Example: `forkscout submit bench --stack beellama-dflash-262k --scenario ladder --rig olares`
    """
    if not engine and not stack:
        raise UsageError("what is to be benched?", advice="name --engine or --stack")
    settings = Settings()
    with open_desk(settings) as desk:
        with reading(desk.database) as session:
            asked = scenarios.named(session, scenario)
        done = submit.submit_bench(
            desk,
            engine_name=engine,
            ref=ref,
            rig=rig or settings.rig,
            target=target,
            scenario=asked,
            context_tokens=context,
            depths=depth or (),
            runs=runs,
            boots=boots,
            drafter=drafter,
            projector=projector,
            against=against,
            stack_name=stack,
        )
    _report(settings, done, as_json)


@submit_app.command("build")
def submit_build(
    engine: str = typer.Option(..., help="engine, as the watch list names it"),
    ref: str | None = typer.Option(None, help="commit, tag, branch or release; empty: the newest"),
    rig: str | None = typer.Option(None, help="rig it must run on; empty: this machine's"),
    as_json: bool = JSON_OPTION,
) -> None:
    """Build one revision.

    Example: `forkscout submit build --engine buun --ref master`
    """
    settings = Settings()
    with open_desk(settings) as desk:
        done = submit.submit_build(desk, engine_name=engine, ref=ref, target=rig or settings.rig)
    _report(settings, done, as_json)


@submit_app.command("fetch")
def submit_fetch(
    place: str = typer.Argument(help="OWNER/REPOSITORY/FILE.gguf@REVISION on Hugging Face"),
    rig: str = typer.Option("", help="into the store of this rig; empty: wherever it is fetched"),
    as_json: bool = JSON_OPTION,
) -> None:
    """Download one model file of Hugging Face, verified against its sha256.

    Without @REVISION the commit that `main` is at now. One file of a set stands for the set.
    A name with spaces or other signs of the shell stands in quotes.
    Example: `forkscout submit fetch unsloth/Qwen3.6-27B-GGUF/Qwen3.6-27B-UD-Q3_K_XL.gguf@main`
    """
    settings = Settings()
    done = submit.submit_fetch(Desk(settings, open_database(settings)), place, rig=rig)
    _report(settings, done, as_json, nothing="nothing to do: these weights are here already")


@submit_app.command("publish")
def submit_publish(as_json: bool = JSON_OPTION) -> None:
    """Write the static site again.

    Example: `forkscout submit publish`
    """
    settings = Settings()
    with open_desk(settings) as desk:
        done = submit.submit_publish(desk)
    _report(settings, done, as_json)


def _report(
    settings: Settings,
    done: Submitted,
    as_json: bool,
    *,
    nothing: str = "nothing to do: this is already built",
) -> None:
    unserved = submit.ring_for(settings, open_database(settings), done.jobs)
    if as_json:
        typer.echo(
            json_text([{**job_json(job), "joined": job.id in done.joined} for job in done.jobs])
        )
        return
    for job in done.jobs:
        joined = ", joined: it was on its way already" if job.id in done.joined else ""
        typer.echo(f"job {job.id}: {one_line(job.title)} ({job.state}{joined})")
    for sentence in done.left_out:
        typer.echo(sentence)
    if not done.jobs:
        typer.echo(nothing)
    say_unserved(unserved)


@app.command()
def cancel(job: int = typer.Argument(help="number of the job")) -> None:
    """Cancel a job, running or not; `retry` undoes it.

    Example: `forkscout cancel 7`
    """
    with writing(open_database(Settings())) as session:
        row = store.cancel(session, job, database_now(session))
        held = [each.id for each in dependents_of(session, job) if each.state == State.BLOCKED]
    ending = "is cancelled" if row.state == State.CANCELLED else "is asked to stop"
    typer.echo(f"job {job} {ending}; `forkscout retry {job}` queues it again")
    if held:
        numbers = ", ".join(str(each) for each in held[:MOST_NUMBERS])
        more = f" and {len(held) - MOST_NUMBERS} more" if len(held) > MOST_NUMBERS else ""
        typer.echo(f"until then {counted(len(held), 'job')} cannot start: {numbers}{more}")


@app.command()
def retry(job: int = typer.Argument(help="number of the job")) -> None:
    """Queue an ended job again, and the ended ones it needs.

    Example: `forkscout retry 7`
    """
    settings = Settings()
    database = open_database(settings)
    with writing(database) as session:
        rows = store.retry(session, job, database_now(session))
    unserved = submit.ring_for(settings, database, rows)
    typer.echo(f"job {job} is {rows[0].state}")
    for need in rows[1:]:
        says = f"job {need.id}, which it waits for, is {need.state} again: {need.title}"
        typer.echo(one_line(says))
    say_unserved(unserved)


@app.command()
def logs(
    job: int = typer.Argument(help="number of the job"),
    follow: bool = typer.Option(False, "--follow", "-f", help="go on until the job ends"),
) -> None:
    """Print the log of a job's newest attempt.

    Example: `forkscout logs 7 -f`
    """
    settings = Settings()
    database = open_database(settings)
    with reading(database) as session:
        store.job(session, job)
    shown: LogReader | None = None
    while True:
        with reading(database) as session:
            over = State(store.job(session, job).state) not in LIVE
        path = settings.job_log(job)
        if path.exists():
            if shown is None or shown.path != path:
                shown = LogReader(path)
            for text in shown.new():
                typer.echo(printable(text), nl=False)
        if over or not follow:
            break
        time.sleep(FOLLOW_SECONDS)
    if shown is None:
        typer.echo(f"job {job} has no log yet", err=True)
