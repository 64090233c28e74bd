"""Commands about negatives: list, show, add, retry, forget; deciding is done elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import typer
from rich.table import Table
from rich.text import Text

from jobs import failure_classes, planner, submit
from jobs.config import Settings
from jobs.db import database_now, open_database, reading, writing
from jobs.errors import UsageError
from jobs.negatives import NegativeState, counted_days
from jobs.payloads import LEAST_CONTEXT, MOST_CONTEXT
from jobs.scenarios import one_series
from jobs.screen import screen
from jobs.store import catalog, handmade, noted, retests, scenarios, shown_negatives
from jobs.store import negatives as store
from jobs.store.handmade import Told
from jobs.store.shown_negatives import ShownNegative
from jobs.tables import JobRow
from jobs.terminal import json_text, one_line

app = typer.Typer()
negatives_app = typer.Typer(help="What does not work, until when, and what overturned it.")
app.add_typer(negatives_app, name="negatives")

JSON_OPTION = typer.Option(False, "--json", help="print JSON")
ALL_OPTION = typer.Option(False, "--all", help="also what stands no longer")
STANDING_OPTION = typer.Option(False, "--standing", help="only what stands; the default")
OVERTURNED_OPTION = typer.Option(False, "--overturned", help="only what works by now")
ENGINE_OPTION = typer.Option("", help="only of one engine")
CLASSES = f"what kind: {', '.join(failure_classes.known())}"
SHOWN_WHY = 120
NOTHING = "nothing stands as impossible; `forkscout negatives --all` shows what did"
NOTHING_EVER = "no negative was ever stored"


@negatives_app.callback(invoke_without_command=True)
def negatives(
    context: typer.Context,
    everything: bool = ALL_OPTION,
    standing: bool = STANDING_OPTION,
    overturned: bool = OVERTURNED_OPTION,
    engine: str = ENGINE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """List what does not work, soonest date first; `negatives show N` tells all of one.

    Example: `forkscout negatives --overturned --engine beellama`
    """
    if context.invoked_subcommand is None:
        _list(everything, standing, overturned, engine, as_json=as_json)


@negatives_app.command("list")
def list_negatives(
    everything: bool = ALL_OPTION,
    standing: bool = STANDING_OPTION,
    overturned: bool = OVERTURNED_OPTION,
    engine: str = ENGINE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """List what does not work, as `negatives` alone does.

    Example: `forkscout negatives list --all`
    """
    _list(everything, standing, overturned, engine, as_json=as_json)


def _list(
    everything: bool, standing: bool, overturned: bool, engine: str, *, as_json: bool
) -> None:
    if everything + standing + overturned > 1:
        raise UsageError("one of --all, --standing and --overturned", advice="leave the others out")
    state = NegativeState.OVERTURNED if overturned else NegativeState.STANDING
    with reading(open_database(Settings())) as session:
        engine_id = catalog.engine_named(session, engine).id if engine else None
        rows = store.listed(session, states=() if everything else (state,), engine_id=engine_id)
        found = shown_negatives.shown(session, rows, database_now(session))
    if as_json:
        typer.echo(json_text([asdict(each) for each in found]))
        return
    if not found:
        typer.echo(NOTHING_EVER if everything else NOTHING)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("no.", "what", "class", "why", "state", "days left", "retest"):
        table.add_column(name, overflow="fold")
    for each in found:
        table.add_row(*(Text(one_line(cell)) for cell in _cells(each)))
    screen().print(table)


def _cells(found: ShownNegative) -> tuple[str, ...]:
    is_standing = found.state == NegativeState.STANDING
    why = " ".join(found.why.split())
    return (
        str(found.id),
        found.what,
        found.failure_class,
        why if len(why) <= SHOWN_WHY else f"{why[: SHOWN_WHY - 1]}…",
        found.state,
        found.left if is_standing else f"stood {found.stood}",
        f"job {found.retest_id}" if found.retest_id else "",
    )


@negatives_app.command("show")
def show(
    negative: int = typer.Argument(help="number of the negative"), as_json: bool = JSON_OPTION
) -> None:
    """Show a negative with those before and after it: what it depended on, what moved.

    Example: `forkscout negatives show 3`
    """
    with reading(open_database(Settings())) as session:
        store.negative(session, negative)
        now = database_now(session)
        found = shown_negatives.chain(session, negative, now)
    if as_json:
        typer.echo(json_text([asdict(each) for each in found]))
        return
    for each in found:
        for line in _told(each):
            typer.echo(one_line(line))


def _told(found: ShownNegative) -> Iterator[str]:
    left = f", {found.left}" if found.state == NegativeState.STANDING else f", stood {found.stood}"
    yield f"negative {found.id}: {found.what} ({found.state}{left})"
    after = f", after negative {found.follows_id}" if found.follows_id else ""
    yield f"  {found.failure_class}: {found.why}"
    source = f"job {found.job_id}" if found.job_id else "a person"
    until = f"{found.expires_at:%Y-%m-%d %H:%M} UTC"
    yield (
        f"  said by {source} at {found.created_at:%Y-%m-%d %H:%M} UTC{after}, "
        f"for {counted_days(found.days)}, until {until}"
    )
    for name, value in found.depended_on:
        yield f"  depended on {name}: {value}"
    if found.preflight:
        yield f"  pre-flight: {found.preflight}"
    for move in found.moves:
        became = f": job {move.job_id} ({move.job_state})" if move.job_id else ""
        held = f"; not tried again: {move.refusal}" if move.refusal else ""
        yield f"  {move.moved_at:%Y-%m-%d %H:%M} UTC {move.says}{became}{held}"
    if found.ended_at:
        yield f"  {found.state} at {found.ended_at:%Y-%m-%d %H:%M} UTC: {found.ended_by}"


@negatives_app.command("add")
def add(
    engine: str = typer.Option(..., help="engine, as the watch list names it"),
    target: str = typer.Option(..., help="model file that is served"),
    context: int = typer.Option(
        ..., min=LEAST_CONTEXT, max=MOST_CONTEXT, help="allocated context in tokens"
    ),
    failure_class: str = typer.Option(..., "--class", help=CLASSES),
    why: str = typer.Option(..., help="what was seen, in a sentence"),
    revision: str | None = typer.Option(None, help="label or commit; empty: the newest known"),
    drafter: str | None = typer.Option(None, help="model file that drafts beside it"),
    mmproj: str | None = typer.Option(None, help="mmproj file loaded beside it"),
    kv: str | None = typer.Option(None, help="cache type; empty: the stack's"),
    rig: str | None = typer.Option(None, help="rig; empty: this machine's"),
    scenario: str = typer.Option("", help="only in this scenario; empty: in any"),
    days: float | None = typer.Option(None, help="how long it stands; empty: the setting's"),
    as_json: bool = JSON_OPTION,
) -> None:
    """Store by hand that something does not work; the pre-flight says so at once if it disagrees.

    Example: `forkscout negatives add --engine buun --target qwen:q4 --drafter qwen-dflash:bf16
    --context 32768 --class does_not_fit --why "28 GB on a card of 24"`
    """
    settings = Settings()
    database = open_database(settings)
    if scenario:
        with reading(database) as session:
            scenario = one_series(scenarios.named(session, scenario)).word
    told = Told(
        engine=engine,
        rig=rig or settings.rig,
        target=target,
        context_tokens=context,
        failure_class=failure_class,
        why=why,
        revision=revision,
        drafter=drafter,
        projector=mmproj,
        kv=kv,
        scenario=scenario,
        days=settings.negative_days if days is None else days,
    )
    with writing(database) as session:
        done = handmade.add(session, told, database_now(session))
        number = done.row.id or 0
        (found,) = shown_negatives.shown(session, [done.row], database_now(session))
    unserved = submit.ring_for(settings, database, done.jobs)
    if as_json:
        typer.echo(json_text({**asdict(found), "jobs": [job.id for job in done.jobs]}))
        return
    until = f"{found.expires_at:%Y-%m-%d %H:%M} UTC"
    typer.echo(one_line(f"negative {number}: {found.what} stands until {until}"))
    if found.follows_id:
        typer.echo(f"it follows negative {found.follows_id} and stands {counted_days(found.days)}")
    if found.preflight and not found.moves:
        typer.echo(one_line(f"the pre-flight: {found.preflight}"))
    for move in found.moves:
        typer.echo(one_line(move.says))
        if move.refusal:
            typer.echo(one_line(f"no trial is queued: {move.refusal}"))
    _say_jobs(done.jobs, unserved)


@negatives_app.command("retry")
def retry(
    negative: int = typer.Argument(help="number of the negative"), as_json: bool = JSON_OPTION
) -> None:
    """Try again now what stands as impossible.

    Example: `forkscout negatives retry 3`
    """
    settings = Settings()
    database = open_database(settings)
    with writing(database) as session:
        jobs = retests.retry(session, negative, database_now(session))
        refusals = [move.refusal for move in noted.moves_of(session, [negative]) if move.refusal]
        live = noted.live_retest(session, negative)
    if live is None and refusals:
        raise UsageError(
            f"negative {negative} is not tried: {refusals[-1]}",
            advice=f"see what it depends on: forkscout negatives show {negative}",
        )
    unserved = submit.ring_for(settings, database, jobs)
    if as_json:
        typer.echo(json_text([job.model_dump(exclude={"payload"}) for job in jobs]))
        return
    _say_jobs(jobs or [live] if live else jobs, unserved)


@negatives_app.command("forget")
def forget(
    negative: int = typer.Argument(help="number of the negative"),
    undo: bool = typer.Option(False, "--undo", help="let a forgotten one stand again"),
) -> None:
    """Take a negative back: it was wrong; `--undo` lets it stand again.

    Example: `forkscout negatives forget 3`
    """
    with writing(open_database(Settings())) as session:
        if undo:
            row = store.recall(session, negative)
        else:
            row = store.forget(session, negative, database_now(session), by=planner.BY_HAND)
    if undo:
        typer.echo(f"negative {negative} stands again until {row.expires_at:%Y-%m-%d %H:%M} UTC")
    else:
        typer.echo(
            f"negative {negative} is forgotten; `forkscout negatives forget {negative} --undo` "
            "lets it stand again"
        )


def _say_jobs(jobs: Sequence[JobRow], unserved: Sequence[str]) -> None:
    for job in jobs:
        typer.echo(f"job {job.id}: {one_line(job.title)} ({job.state})")
    if unserved:
        typer.echo(f"nobody serves {', '.join(unserved)} now; `forkscout up` starts the workers")
