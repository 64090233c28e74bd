"""Commands about forks: list and rank them, explain one; they print, others decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.errors import UsageError, did_you_mean
from jobs.screen import screen
from jobs.sightings import RepositoryRow
from jobs.store import forks as store
from jobs.terminal import counted, json_text, one_line, sound
from scout.github.governor import Tier
from scout.ranked_forks import RankedFork, best_first, ranked_forks

app = typer.Typer()
forks_app = typer.Typer(invoke_without_command=True)
app.add_typer(forks_app, name="forks")

AsJson = Annotated[bool, typer.Option("--json", help="print JSON for programs")]
SUBJECTS = 5
LEGEND = (
    "own: patches that upstream lacks; beyond: those of them that the parent lacks too",
    "?: git has not looked at the fork, or at its parent, yet; score -: not worth one",
    "tier: 0 an engine of the watch list, 1 watched closely, 2 a candidate, 3 known by name",
)


@forks_app.callback()
def forks(
    context: typer.Context,
    ranked: Annotated[bool, typer.Option("--rank", help="score each fork, with reasons")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="how many")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the forks that were found, the most promising first with --rank.

    `own` are patches that upstream lacks, `beyond` those that the parent lacks as well.

    Example: forkscout forks --rank --limit 10
    """
    if context.invoked_subcommand is not None:
        return
    found = _found()
    found = best_first(found) if ranked else sorted(found, key=_latest_push)
    shown = found[:limit]
    if as_json:
        facts = [each.as_json() for each in shown]
        typer.echo(json_text(facts))
        return
    if not shown:
        typer.echo("no fork was found yet: forkscout scout run --source github_forks")
        return
    console = screen()
    for each in shown:
        for line in _lines(each, ranked=ranked):
            console.print(Padding(Text(one_line(line.text)), (0, 0, 0, line.indent), expand=False))
    for sign in LEGEND:
        typer.echo(sign)


@forks_app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="OWNER/NAME")], as_json: AsJson = False
) -> None:
    """Explain one fork's score in full, and how to watch or build it.

    Example: forkscout forks show Anbeeld/beellama.cpp
    """
    name = sound(name)
    database = open_database(Settings())
    try:
        with reading(database) as session:
            row = next(iter(store.repositories_like(session, name)), None)
            if row is None:
                row = store.formerly(session, name)
            if row is None:
                names = [each.full_name for each in store.repositories(session)]
                raise UsageError(
                    f"no fork {name[:80]!r} is known",
                    advice=did_you_mean(
                        name,
                        names,
                        none="look first: forkscout scout run --source github_forks",
                        listed_by="forkscout forks --limit 10000",
                    ),
                )
            (found,) = ranked_forks(session, [row], now=clock.now())
    finally:
        database.dispose()
    if as_json:
        typer.echo(json_text(found.as_json()))
        return
    if row.full_name.lower() != name.lower():
        typer.echo(one_line(f"{name} is called {row.full_name} now"))
    for line in _explained(found):
        typer.echo(one_line(line))


def _found() -> list[RankedFork]:
    database = open_database(Settings())
    try:
        with reading(database) as session:
            rows = store.repositories(session)
            found = ranked_forks(session, rows, now=clock.now())
            return [each for each in found if each.row.parent_github_id or each.is_copy]
    finally:
        database.dispose()


def _latest_push(each: RankedFork) -> float:
    return -each.row.pushed_at.timestamp() if each.row.pushed_at else 0.0


@dataclass(frozen=True)
class _Line:
    """One line of a list, and how far what a terminal wraps of it is moved in."""

    text: str
    indent: int = 6


def _lines(each: RankedFork, *, ranked: bool) -> Iterator[_Line]:
    row, git = each.row, each.git
    own = beyond = "?"
    if git is not None:
        own = str(git.own_vs_upstream)
        beyond = "?" if git.own_vs_parent is None else str(git.own_vs_parent)
    name = row.full_name + (" (no fork on paper)" if each.is_copy else "")
    score = "   -" if each.rank.shut_out else f"{each.rank.score:4.0f}"
    yield _Line(f"{score}  {name}" if ranked else name, 0)
    state = "" if row.state == store.KNOWN else f", {row.state}"
    pushed = _pushed(row)
    stars = counted(row.stars, "star")
    yield _Line(f"own {own}, beyond {beyond}, tier {row.tier}, {stars}, {pushed}{state}")
    if ranked:
        yield _Line(each.rank.shut_out or "; ".join(each.rank.reasons))


def _explained(found: RankedFork) -> Iterator[str]:
    row = found.row
    why = found.rank.shut_out
    score = f"no score: {why}" if why else f"{found.rank.score:g} of 100"
    yield f"{row.full_name}: {score}"
    if row.state in store.AWAY:
        yield f"  it {store.AWAY[row.state]}"
    if row.description:
        yield f"  {row.description}"
    about = [f"a fork of {found.parent_name}"] if found.parent_name else []
    about += [_pushed(row)]
    about += [counted(row.stars, "star"), f"tier {row.tier}"]
    yield f"  {', '.join(about)}"
    for points, why in found.rank.points:
        yield f"  {points:+5.1f}  {why}"
    yield from _by_git(found)
    if found.latest:
        yield f"latest release: {found.latest}"
    if found.release:
        yield f"made by a person, or with files: {found.release}"
    if found.named_in:
        yield f"named in: {'; '.join(found.named_in)}"
    yield from _what_next(found)


def _by_git(found: RankedFork) -> Iterator[str]:
    git = found.git
    if git is None:
        yield _unseen(found)
        return
    when = f"{found.looked_at:%Y-%m-%d %H:%M} UTC" if found.looked_at else "some time ago"
    yield f"git looked {when} at branch {git.branch}, {git.head[:9]}"
    for subject in git.subjects[:SUBJECTS]:
        yield f"  {subject}"
    if len(git.subjects) > SUBJECTS:
        yield f"  and {git.own - SUBJECTS} more"


def _pushed(row: RepositoryRow) -> str:
    """When somebody pushed, as GitHub tells it; a fork begins with its parent's moment."""
    if row.pushed_at is None:
        return "nothing known of its pushes"
    if row.created_at is not None and row.pushed_at <= row.created_at:
        return "never pushed to"
    return f"pushed {row.pushed_at:%Y-%m-%d}"


def _unseen(found: RankedFork) -> str:
    if found.engine and found.row.parent_github_id is None:
        return f"nothing is held against upstream: forkscout lineage {found.engine}"
    if found.row.misses:
        return "its number showed nothing at the last look; git looks once GitHub shows it again"
    if found.engine:
        return "git has not looked at it yet: forkscout scout run --source git"
    if found.row.tier <= Tier.CANDIDATE and found.row.state == store.KNOWN:
        return "git has not looked at it yet: forkscout scout run --source candidates"
    return "git has not looked at it: that is done for forks somebody pushed to of late"


def _what_next(found: RankedFork) -> Iterator[str]:
    name = found.row.full_name
    if found.engine:
        yield f"it is built as engine {found.engine}: forkscout lineage {found.engine}"
        return
    if found.row.tier == Tier.WATCHED:
        yield f"you hear of every push; to end that: forkscout unwatch fork {name}"
    else:
        yield f"to hear of every push: forkscout watch fork {name}"
    yield f"to build and bench it: forkscout watchlist add {name} --via cmake"
