"""The command that shows what planning may still use today; it changes nothing."""

from __future__ import annotations

from dataclasses import asdict

import typer
from rich.table import Table
from rich.text import Text

from jobs.config import Settings
from jobs.db import database_now, open_database, reading
from jobs.screen import screen
from jobs.store.shown_budgets import ShownBudget, shown_budgets
from jobs.terminal import json_text, one_line

app = typer.Typer()

NO_BUDGET = (
    "planning has no bound: a watch list sets one with [[budget]], "
    "FORKSCOUT_BUDGET_HOURS_PER_DAY one for every rig"
)


@app.command("budgets")
def budgets(as_json: bool = typer.Option(False, "--json", help="print JSON")) -> None:
    """Show the hours that planning may use today (UTC), and what is left of them.

    Example: `forkscout budgets`
    """
    settings = Settings()
    database = open_database(settings)
    try:
        with reading(database) as session:
            found = shown_budgets(
                session, database_now(session), hours=settings.budget_hours_per_day
            )
    finally:
        database.dispose()
    if as_json:
        typer.echo(json_text([asdict(each) for each in found]))
        return
    if not found:
        typer.echo(NO_BUDGET)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("budget", "hours a day", "used", "planned", "left", "set by"):
        table.add_column(name, overflow="fold")
    for each in found:
        table.add_row(*(Text(one_line(cell)) for cell in _cells(each)))
    screen().print(table)


def _cells(found: ShownBudget) -> tuple[str, ...]:
    hours = (found.hours_per_day, found.used_hours, found.planned_hours, found.left_hours)
    set_by = "FORKSCOUT_BUDGET_HOURS_PER_DAY" if found.by_default else "watch list"
    return (found.name, *(f"{each:.2f}" for each in hours), set_by)
