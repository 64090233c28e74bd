"""The command that shows or makes what an event leads to; it prints, others decide."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import typer
from rich.table import Table
from rich.text import Text
from sqlalchemy import Engine
from sqlmodel import Session

from jobs import dispatch, submit
from jobs.config import Settings
from jobs.db import database_now, open_database, reading, trying, writing
from jobs.dispatch import Planned
from jobs.errors import UsageError
from jobs.model import Kind
from jobs.planner import JobRequest
from jobs.planning.worth import UNKNOWN_SECONDS
from jobs.planning_round import planning
from jobs.planning_tables import LeftOutRow
from jobs.screen import screen
from jobs.store import catalog, rules, work, worlds
from jobs.tables import EventRow, JobRow
from jobs.terminal import counted, json_text, one_line

app = typer.Typer()

NOTHING_SEEN = "nothing was seen yet: `forkscout scout run` looks"
NOTHING_NEW = "every event is planned; `forkscout plan --dry-run EVENT` shows one of them again"
NOTHING_LEFT = "nothing is left out"


@app.command("plan")
def plan(
    event: str = typer.Argument("", help="number or key of an event; forkscout events --json"),
    everything: bool = typer.Option(False, "--all", help="every event that nobody planned yet"),
    dry_run: bool = typer.Option(False, "--dry-run", help="only show what would be queued"),
    left_out: bool = typer.Option(False, "--left-out", help="show what was not queued, and why"),
    as_json: bool = typer.Option(False, "--json", help="print JSON"),
) -> None:
    """Queue what an event asks for, or show what that would be.

    Without an event, all that nobody planned yet.
    Example: `forkscout plan --dry-run 12`
    """
    if event and everything:
        raise UsageError("one event or --all", advice="leave one of them out")
    settings = Settings()
    database = open_database(settings)
    try:
        if left_out:
            _show_left_out(database, event, as_json)
        else:
            _plan(settings, database, event, dry_run=dry_run, as_json=as_json)
    finally:
        database.dispose()


def _plan(
    settings: Settings, database: Engine, event: str, *, dry_run: bool, as_json: bool
) -> None:
    hours = settings.budget_hours_per_day
    if dry_run or event:
        with trying(database) if dry_run else writing(database) as session:
            found = _planned(session, event, hours)
    else:
        found = list(planning(database, budget_hours=hours))
    with reading(database) as session:
        any_event = bool(catalog.events(session, limit=1))
    if as_json:
        typer.echo(json_text([_as_json(each) for each in found]))
    for each in () if as_json else found:
        for line in _lines(each):
            typer.echo(one_line(line))
    if not found and not as_json:
        typer.echo(NOTHING_NEW if any_event else NOTHING_SEEN)
    if not dry_run:
        jobs = [job for each in found for job in each.jobs]
        _ring(settings, database, jobs, quiet=as_json)


def _ring(settings: Settings, database: Engine, jobs: Sequence[JobRow], *, quiet: bool) -> None:
    unserved = submit.ring_for(settings, database, jobs)
    if unserved and not quiet:
        typer.echo(f"nobody serves {', '.join(unserved)} now; `forkscout up` starts the workers")


def _planned(session: Session, event: str, hours: float) -> list[Planned]:
    work.take_turn(session)
    now = database_now(session)
    if not event:
        return list(dispatch.all_events(session, now, budget_hours=hours))
    row, world = _event(session, event), worlds.world(session, now)
    return dispatch.plan_event(session, row, world, budget_hours=hours)


def _event(session: Session, text: str) -> EventRow:
    row = rules.event(session, text)
    if row is None:
        raise UsageError(f"there is no event {text[:80]!r}", advice="see `forkscout events --json`")
    return row


def _lines(found: Planned) -> Iterator[str]:
    decided = found.plan
    yield f"event {found.event.id}: {found.event.title}"
    if found.stands_for:
        others = counted(found.stands_for, "event", "events")
        yield f"  stands for {others} of this look, whose heads it replaced"
    by_identity = {request.identity: request for request in decided.everything}
    shown: set[str] = set()
    for request in decided.everything:
        if request.kind is Kind.BENCH:
            shown |= {request.identity, *request.needs}
            yield f"  {_line(request)}"
            for need in request.needs:
                done = f" ({found.there[need]})" if need in found.there else ""
                yield f"    needs: {by_identity[need].title}{done}"
    for request in decided.everything:
        if request.identity not in shown:
            done = f" ({found.there[request.identity]})" if request.identity in found.there else ""
            yield f"  {_line(request)}{done}"
    benches = sum(request.kind is Kind.BENCH for request in decided.everything)
    if benches:
        minutes = f"about {decided.counted_minutes:.0f} minutes of the rig"
        ten = f"{UNKNOWN_SECONDS / 60:.0f} minutes"
        unknown = f": {decided.unknown} of unknown length, counted as {ten} each"
        yield (
            f"  {counted(benches, 'bench', 'benches')}, {minutes}"
            + (unknown if decided.unknown else "")
        )
    if not decided.everything:
        yield "  nothing is queued"
    for each in decided.left_out:
        worth = f" (worth {each.value:.2f})" if each.value is not None else ""
        yield f"  left out: {each.what}: {each.why.value}: {each.detail}{worth}"


def _line(request: JobRequest) -> str:
    took = request.estimate_seconds
    length = "length unknown" if took is None else f"about {took / 60:.1f} min"
    baseline = f", {request.reason}" if request.reason.startswith("baseline") else ""
    trial = ", a trial" if "(a trial: " in request.reason else ""
    rule = f", rule {request.cause['rule']}" if request.cause.get("rule") else ""
    first = f", priority {request.priority}" if request.priority else ""
    how = f"{request.lane.name.lower()}{first}, {length}{rule}"
    return f"{request.title}: {how}{baseline}{trial}"


def _as_json(found: Planned) -> dict[str, Any]:
    decided = found.plan
    return {
        "event": found.event.id,
        "key": found.event.key,
        "kind": found.event.kind,
        "title": found.event.title,
        "stands_for": found.stands_for,
        "gpu_minutes": round(decided.gpu_minutes, 2),
        "counted_minutes": round(decided.counted_minutes, 2),
        "benches_of_unknown_length": decided.unknown,
        "jobs": [
            {
                "kind": request.kind.value,
                "title": request.title,
                "queue": request.queue,
                "lane": request.lane.name.lower(),
                "rule": request.cause.get("rule"),
                "priority": request.priority,
                "source": request.source,
                "reason": request.reason,
                "identity": request.identity,
                "needs": list(request.needs),
                "estimate_seconds": request.estimate_seconds,
                "there": found.there.get(request.identity),
            }
            for request in decided.everything
        ],
        "left_out": [
            {
                "what": each.what,
                "why": each.why.value,
                "detail": each.detail,
                "value": each.value,
                "identity": each.identity,
            }
            for each in decided.left_out
        ],
    }


def _show_left_out(database: Engine, event: str, as_json: bool) -> None:
    with reading(database) as session:
        wanted: Collection[int] | None = None
        if event:
            wanted = [_event(session, event).id or 0]
        rows = rules.left_out(session, event_ids=wanted)
    if as_json:
        typer.echo(json_text([row.model_dump(exclude={"closed_at", "ending"}) for row in rows]))
        return
    if not rows:
        typer.echo(NOTHING_LEFT)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("event", "what", "why", "worth", "since"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in _cells(row)))
    screen().print(table)


def _cells(row: LeftOutRow) -> tuple[str, ...]:
    value = "" if row.value is None else f"{row.value:.2f}"
    why = f"{row.why}: {row.detail}"
    return (str(row.event_id), row.what, why, value, f"{row.left_at:%Y-%m-%d %H:%M} UTC")
