"""Commands about rigs and workers: how they are, quarantine and release by hand."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobs.cli.queues import LONGEST_REASON
from jobs.config import Settings
from jobs.db import database_now, open_database, reading, writing
from jobs.errors import UsageError, did_you_mean
from jobs.store import doubts, rigs, workshop
from jobs.store.workshop import ShownRig
from jobs.submit import ring_queues
from jobs.terminal import counted, json_text, printable

app = typer.Typer()
rig_app = typer.Typer(no_args_is_help=True, help="How the rigs are; quarantine and release.")
app.add_typer(rig_app, name="rig")

JSON = typer.Option(False, "--json", help="print JSON")
NAME = typer.Argument(help="name of the rig")


@rig_app.command("list")
def list_rigs(as_json: bool = JSON) -> None:
    """List the rigs, and how far their numbers can be believed.

    Example: `forkscout rig list`
    """
    with reading(open_database(Settings())) as session:
        found = workshop.shown_rigs(session)
    if as_json:
        typer.echo(json_text([asdict(each) for each in found]))
        return
    for each in found:
        typer.echo(printable(_told(each)))
    if not found:
        typer.echo("no rig is known; `forkscout watchlist import demo` names one")


@rig_app.command("show")
def show_rig(name: str = NAME, as_json: bool = JSON) -> None:
    """Show one rig: state and why, golden and band, its last runs.

    Example: `forkscout rig show cpu`
    """
    with reading(open_database(Settings())) as session:
        known = workshop.shown_rigs(session)
    found = next((each for each in known if each.name == name), None)
    if found is None:
        raise UsageError(
            f"there is no rig {name[:80]!r}", advice=did_you_mean(name, [r.name for r in known])
        )
    if as_json:
        typer.echo(json_text(asdict(found)))
        return
    typer.echo(printable(_told(found)))
    golden = found.golden
    if golden is not None:
        band = "not known yet" if golden.low is None else f"{golden.low:.1f} to {golden.high:.1f}"
        says = f"golden: {golden.stack} at {golden.revision} ({golden.origin}), band {band} t/s"
        typer.echo(printable(says))
        if golden.fault:
            typer.echo(printable(f"it cannot run yet: {golden.fault}"))
    for run in found.runs:
        speed = "" if run.decode_tps is None else f" {run.decode_tps:.1f} t/s"
        words = f"{_at(run.at)} {run.outcome.replace('_', ' ')}{speed}: {run.why}"
        typer.echo(printable(words))


@rig_app.command("quarantine")
def quarantine(
    name: str = NAME,
    why: str = typer.Option(..., "--why", help="for those who wait"),
) -> None:
    """Let a rig run nothing but health jobs, until you release it.

    Example: `forkscout rig quarantine cpu --why "fan is broken"`
    """
    with writing(open_database(Settings())) as session:
        rigs.quarantine(session, name, why[:LONGEST_REASON], database_now(session))
    typer.echo(f"{name} is quarantined; `forkscout rig release {name}` undoes it")


@rig_app.command("release")
def release(
    name: str = NAME,
    believe: bool = typer.Option(
        False, "--believe", help="its doubtful results are believed again"
    ),
) -> None:
    """End a quarantine; the golden then says whether the rig is trusted.

    Example: `forkscout rig release cpu`
    """
    settings = Settings()
    database = open_database(settings)
    with writing(database) as session:
        was_shut = rigs.release(session, name, database_now(session))
        count = rigs.clear_doubt(session, name) if believe else 0
        doubts.settle(session, database_now(session))
    ring_queues(settings, database, [f"{rigs.BENCH}{name}"])
    typer.echo(f"{name} is released" if was_shut else f"{name} was not quarantined")
    if believe:
        typer.echo(f"{counted(count, 'result')} believed again")


@rig_app.command("golden")
def golden(name: str = NAME) -> None:
    """Run the golden of a rig as soon as its worker is free.

    Example: `forkscout rig golden cpu`
    """
    with writing(open_database(Settings())) as session:
        found = rigs.want_run(session, name, database_now(session))
    says = f"the golden of {name} ({found.stack} at {found.revision}) runs next"
    typer.echo(printable(f"{says}; `forkscout rig show {name}` tells what it said"))


@app.command()
def workers(as_json: bool = JSON) -> None:
    """List the workers: what each does, when it was heard, what holds it back.

    Example: `forkscout workers`
    """
    settings = Settings()
    with reading(open_database(settings)) as session:
        found = workshop.workshop(
            session, database_now(session), silent_seconds=settings.lease_seconds
        )
    if as_json:
        rows = [asdict(each) for each in found.workers]
        typer.echo(json_text({"workers": rows, "alarms": [asdict(each) for each in found.alarms]}))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("worker", "now", "heard", "job"):
        table.add_column(column, overflow="fold")
    for each in found.workers:
        now = f"{each.condition}: {each.trouble}" if each.trouble else each.condition
        job = f"{each.job.id} {each.job.title}" if each.job else ""
        cells = (each.name, now, f"{each.beat_age_seconds} s ago", job)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    if found.workers:
        Console(soft_wrap=False).print(table)
    else:
        typer.echo("no worker has reported; `forkscout up` starts them")
    for alarm in found.alarms:
        typer.echo(printable(f"alarm: {alarm.says}; {alarm.advice}"))


def _told(found: ShownRig) -> str:
    words = [f"{found.name}: {found.state}"]
    if found.since and found.state == "quarantined":
        words.append(f"since {_at(found.since)}")
    if found.last_good_at:
        words.append(f"last in the band {_at(found.last_good_at)}")
    if found.doubtful_results:
        words.append(f"{counted(found.doubtful_results, 'doubtful result')}")
    return ", ".join(words) + (f" ({found.why})" if found.why else "")


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
