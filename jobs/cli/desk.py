"""What commands that queue jobs share: a desk that shows git's progress, and who hears of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from jobs.config import Settings
from jobs.db import open_database
from jobs.resolving import Desk

JSON_OPTION = typer.Option(False, "--json", help="print JSON")


@contextmanager
def open_desk(settings: Settings) -> Iterator[Desk]:
    """A desk that shows git's progress in one line, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Desk(settings, open_database(settings))
        return
    with console.status("looking the revision up ...") as status:
        yield Desk(
            settings, open_database(settings), lambda line: status.update(escape(line.strip()))
        )


def say_unserved(queues: Sequence[str]) -> None:
    """Tell which queues nobody serves, if any."""
    if queues:
        typer.echo(f"nobody serves {', '.join(queues)} now; `forkscout up` starts the workers")
