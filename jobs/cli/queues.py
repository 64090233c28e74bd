"""Commands about queues and workers: pause, resume, drain; they end no job."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import typer

from jobs import submit
from jobs.config import Settings
from jobs.db import database_now, open_database, reading, writing
from jobs.errors import UsageError
from jobs.model import RIG_NAME
from jobs.station import BENCH
from jobs.store import fleet, line, pauses
from jobs.terminal import counted, json_text, one_line

app = typer.Typer()
queue_app = typer.Typer(no_args_is_help=True, help="Pause and resume queues.")
app.add_typer(queue_app, name="queue")

LONGEST_REASON = 300
_SPAN = re.compile(r"([1-9][0-9]{0,4})([mhdw])", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@queue_app.command("pause")
def pause(
    queue: str = typer.Argument(help="build, publish or bench.RIG"),
    until: str = typer.Option("", help="when it goes on by itself: 90m, 2h, 3d, 2026-11-30T18:00"),
    reason: str = typer.Option("", "--why", "--reason", help="for those who wait"),
) -> None:
    """Take no new job of a queue; what runs is finished.

    Example: `forkscout queue pause bench.cpu --until 2h --why "driver update"`
    """
    name = checked_queue(queue)
    with writing(open_database(Settings())) as session:
        now = database_now(session)
        moment = until_when(until, now) if until else None
        pauses.pause(session, name, now, reason=kept_reason(reason), until=moment)
    end = f"until {moment:%Y-%m-%d %H:%M} UTC" if moment else f"`forkscout queue resume {name}`"
    typer.echo(f"{name} is paused; it goes on {end if moment else f'with {end}'}")


@queue_app.command("resume")
def resume(queue: str = typer.Argument(help="build, publish or bench.RIG")) -> None:
    """Let a paused queue go on.

    Example: `forkscout queue resume bench.cpu`
    """
    name, settings = checked_queue(queue), Settings()
    database = open_database(settings)
    with writing(database) as session:
        was_paused = pauses.resume(session, name)
    submit.ring_queues(settings, database, [name])
    typer.echo(f"{name} goes on" if was_paused else f"{name} was not paused")


@queue_app.command("list")
def list_queues(as_json: bool = typer.Option(False, "--json", help="print JSON")) -> None:
    """List the queues that have due jobs, workers or a pause.

    Example: `forkscout queue list`
    """
    with reading(open_database(Settings())) as session:
        now = database_now(session)
        paused = pauses.pauses(session, now)
        workers = fleet.workers(session)
        names = {*line.queues_in_line(session), *paused, *(w.queue for w in workers)}
        found: list[dict[str, Any]] = [
            {
                "queue": name,
                "waiting": line.length(session, name),
                "workers": [w.name for w in workers if w.queue == name],
                "draining": [w.name for w in workers if w.queue == name and w.draining],
                "paused_since": paused[name].since if name in paused else None,
                "paused_until": paused[name].until if name in paused else None,
                "pause_reason": paused[name].reason if name in paused else "",
            }
            for name in sorted(names - {"scout"})
        ]
    if as_json:
        typer.echo(json_text(found))
        return
    for each in found:
        typer.echo(one_line(_told(each)))
    if not found:
        typer.echo("no queue has a job, a worker or a pause; `forkscout up` starts the workers")


def _told(found: dict[str, Any]) -> str:
    words = [f"{found['queue']}: {counted(found['waiting'], 'job')} in line"]
    words.append(counted(len(found["workers"]), "worker"))
    if found["draining"]:
        words.append(f"{len(found['draining'])} draining")
    if found["paused_since"]:
        end = f" until {found['paused_until']:%Y-%m-%d %H:%M} UTC" if found["paused_until"] else ""
        reason = f" ({found['pause_reason']})" if found["pause_reason"] else ""
        words.append(f"paused{end}{reason}")
    return ", ".join(words)


@app.command()
def drain(
    name: str = typer.Argument(help="a worker, or a queue for all of its workers"),
    undo: bool = typer.Option(False, "--undo", help="let them take jobs again"),
) -> None:
    """Let a worker take no more jobs and give its running one back unfinished.

    The attempt does not count. A worker that is started again takes jobs again; to keep a queue at
    rest use `forkscout queue pause`.
    Example: `forkscout drain bench.cpu`
    """
    settings = Settings()
    database = open_database(settings)
    with writing(database) as session:
        known = fleet.workers(session)
        meant = [worker for worker in known if name in (worker.name, worker.queue)]
        for worker in meant:
            fleet.drain(session, worker.name, draining=not undo)
    if not meant:
        names = ", ".join(sorted({worker.name for worker in known})) or "none"
        raise UsageError(
            f"no worker and no served queue is called {name[:80]!r}",
            advice=f"workers: {names}; `forkscout queue pause QUEUE` keeps a queue at rest",
        )
    if undo:
        submit.ring_queues(settings, database, [worker.queue for worker in meant])
    says = "takes jobs again" if undo else "takes no more jobs and gives its running one back"
    for worker in meant:
        typer.echo(f"{one_line(worker.name)} {says}")


def kept_reason(text: str) -> str:
    """A reason as it is kept: one line of at most LONGEST_REASON characters; a cut is told."""
    words = one_line(text).strip()
    if len(words) > LONGEST_REASON:
        typer.echo(f"the reason is cut after {LONGEST_REASON} characters", err=True)
    return words[:LONGEST_REASON]


def checked_queue(name: str) -> str:
    """The name of a queue that holds jobs; raises `UsageError` for another."""
    if name in ("build", "publish"):
        return name
    rig = name.removeprefix(BENCH)
    if rig != name and RIG_NAME.fullmatch(rig):
        return name
    raise UsageError(f"there is no queue {name[:80]!r}", advice="queues: build, publish, bench.RIG")


def until_when(text: str, now: datetime) -> datetime:
    """A moment that lies ahead, or how long from now; without a time zone it is UTC."""
    try:
        if span := _SPAN.fullmatch(text):
            return now + timedelta(**{_UNITS[span[2]]: int(span[1])})
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text[:80]!r} is no moment", advice="write 90m, 2h, 3d or 2026-11-30T18:00"
        ) from None
    if moment <= now:
        raise UsageError(f"{text[:80]!r} is over", advice="name a moment that lies ahead")
    return moment
