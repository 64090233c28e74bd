"""Commands of this room: `web`, `publish` and `leaderboard`; each parses, calls and reports."""

from __future__ import annotations

import errno
import socket
from datetime import UTC, datetime

import typer
import uvicorn
from rich.console import Console

from jobs import db
from jobs.config import Settings
from jobs.errors import UsageError
from web import plain, table
from web.app import create_app
from web.export import export
from web.site import site_of

app = typer.Typer()

JSON = typer.Option(False, "--json", help="Print JSON instead of a table.")


@app.command()
def web() -> None:
    """Serve the live site until Ctrl-C.

    Example: `FORKSCOUT_PORT=9000 forkscout web`
    """
    settings = Settings()
    listener = listen(settings.host, settings.port)
    engine = db.open_database(settings)
    config = uvicorn.Config(
        create_app(engine, settings), log_level="warning", access_log=False, server_header=False
    )
    typer.echo(f"The site is on http://{_shown(settings.host)}:{settings.port}")
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        listener.close()
        engine.dispose()


@app.command()
def publish() -> None:
    """Write the static site and print the path of its front page.

    Example: `FORKSCOUT_SITE=public forkscout publish`
    """
    settings = Settings()
    engine = db.open_database(settings)
    typer.echo(export(engine, settings.resolved_site, site=site_of(settings)))


@app.command()
def leaderboard(as_json: bool = JSON) -> None:
    """Print the leaderboard, the same entries in the same order as on the site.

    Example: `forkscout leaderboard --json`
    """
    settings = Settings()
    site = site_of(settings)
    with db.reading(db.open_database(settings)) as session:
        boards = site.boards(session)
    if as_json:
        typer.echo(plain.text({"groups": plain.boards(boards, site.clean)}))
    else:
        Console().print(table.leaderboard(boards, now=datetime.now(UTC), clean=site.clean))


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; says what to do where that address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} on {host} is taken",
                advice="Stop the program that holds it, or set FORKSCOUT_PORT to a free port.",
            ) from error
        raise UsageError(
            f"cannot listen on {host}, port {port} ({error.strerror or error})",
            advice="Set FORKSCOUT_HOST to an address of this machine, such as 127.0.0.1.",
        ) from error


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
