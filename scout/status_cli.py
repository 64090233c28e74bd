"""The command that tells in one look which sources are well; it asks nobody and prints only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.store.source_health import (
    DEGRADED,
    GITHUB,
    TOKEN_ENDS_SOON,
    Outlook,
    SourceHealth,
    outlook,
)
from jobs.terminal import counted, json_text, one_line
from scout.github.rounds import IDENTITY
from scout.github.visits import SOURCES
from scout.hub.rounds import SOURCES as HUB_SOURCES
from scout.rounds import CANDIDATES, PARTS

app = typer.Typer()


@app.command("status")
def status(
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for programs")] = False,
) -> None:
    """Show which sources are well, since when one is not, what to do, and the quota left.

    Ends with 1 where a source is degraded. Example: forkscout scout status
    """
    database = open_database(Settings())
    try:
        with reading(database) as session:
            found = outlook(session)
    finally:
        database.dispose()
    now = clock.now()
    if as_json:
        typer.echo(json_text(asdict(found)))
    else:
        for line in lines(found, now=now):
            typer.echo(one_line(line))
    if any(each.state == DEGRADED for each in found.sources):
        raise typer.Exit(1)


def lines(found: Outlook, *, now: datetime) -> Iterator[str]:
    """The outlook as a person reads it."""
    known = {each.source: each for each in found.sources}
    names = (*PARTS, CANDIDATES, IDENTITY, *SOURCES, *HUB_SOURCES)
    width = max(map(len, names))
    for name in names:
        yield from _source(name, known.get(name), width)
    if not known:
        yield "no source was looked at yet: forkscout scout run"
    for wait in found.waits:
        if wait.until > now:
            yield f"{wait.service} is left alone until {wait.until:%H:%M} UTC: {wait.why}"
    for each in found.quotas:
        left = each.limit if each.reset_at <= now else each.remaining
        whose = "" if each.service == GITHUB else f"{each.service}'s "
        full = f"full at {each.reset_at:%H:%M} UTC"
        yield f"{whose}quota {each.bucket}: {left} of {each.limit} left, {full}"
    if found.token_ends_at:
        days = (found.token_ends_at - now).days
        yield f"the token ends {found.token_ends_at:%Y-%m-%d}, in {counted(days, 'day')}"
        if found.token_ends_at - now < TOKEN_ENDS_SOON:
            yield "  next: make a new one and set FORKSCOUT_GITHUB_TOKEN"


def _source(name: str, found: SourceHealth | None, width: int) -> Iterator[str]:
    if found is None:
        yield f"{name:{width}}  not looked at yet"
        return
    since = f" since {found.since:%Y-%m-%d %H:%M} UTC" if found.since else ""
    failing = f", {counted(found.failing, 'place')} without an answer" if found.failing else ""
    looked = f", looked {found.looked_at:%Y-%m-%d %H:%M} UTC"
    yield f"{name:{width}}  {found.state}{since}{failing}{looked}"
    if found.is_well:
        return
    if found.why:
        yield f"  {found.why}"
    if found.advice:
        yield f"  next: {found.advice}"
