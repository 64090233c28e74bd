"""The root command: mounts every room's commands and turns errors into one clear sentence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points, version

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text
from sqlalchemy.exc import DBAPIError

from jobs import log
from jobs.cli import (
    approvals,
    bringing,
    budgets,
    builds,
    failures,
    flags,
    listing,
    negatives,
    plan,
    queues,
    rigs,
    run,
    scenarios,
    work,
)
from jobs.config import ENV_PREFIX
from jobs.errors import ScoutError, UsageError
from jobs.terminal import printable, sound

COMMAND_GROUP = "forkscout.commands"


def build_app(wanted: str = "") -> typer.Typer:
    """The command line; rooms are not loaded for a command that is ours, so that it starts fast."""
    app = typer.Typer(
        name="forkscout",
        help="Watches forks of LLM engines, builds and benches what moved, and ranks it.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    ours = (
        run.app,
        work.app,
        builds.app,
        flags.app,
        approvals.app,
        plan.app,
        budgets.app,
        listing.app,
        queues.app,
        bringing.app,
        rigs.app,
        negatives.app,
        scenarios.app,
        failures.app,
    )
    for each in ours:
        app.add_typer(each)
    if wanted not in set().union(*map(_names, ours)):
        for entry in sorted(entry_points(group=COMMAND_GROUP), key=lambda entry: entry.name):
            app.add_typer(entry.load())
    return app


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forkscout {version('forkscout')}")
        raise typer.Exit


def _options(
    _version: bool = typer.Option(
        False, "--version", callback=_say_version, is_eager=True, help="print the version"
    ),
) -> None:
    """Watches forks of LLM engines, builds and benches what moved, and ranks it."""


def _names(app: typer.Typer) -> set[str]:
    commands = {c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands}
    return commands | {str(group.name) for group in app.registered_groups}


def main() -> None:
    """Run the command line; exit 2 for a wrong wish, 1 for a failure."""
    log.configure()
    try:
        refuse_what_is_no_text(sys.argv[1:])
        build_app(next(iter(sys.argv[1:]), ""))()
    except ScoutError as fault:
        complain(fault.message, fault.advice)
        sys.exit(fault.exit_code)
    except ValidationError as fault:
        complain(wrong_setting(fault), "see .env.example for every setting")
        sys.exit(2)
    except DBAPIError as fault:
        says = " ".join(str(fault.orig).split())
        complain(f"the database failed: {says}", "try again; then look at it and at the disk")
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        complain("stopped")
        sys.exit(130)
    except OSError as fault:
        where = f": {fault.filename}" if fault.filename else ""
        says = f"{fault.strerror or fault}{where}"
        complain(says, "check the disk, the permissions and FORKSCOUT_HOME")
        sys.exit(1)


def refuse_what_is_no_text(words: Sequence[str]) -> None:
    """Raise `UsageError` for an argument that holds bytes which are no UTF-8."""
    for word in words:
        if word != sound(word):
            raise UsageError(
                f"{sound(word)[:80]!r} holds bytes that are no UTF-8",
                advice="write it as UTF-8; rename a file whose name is not",
            )


def wrong_setting(fault: ValidationError) -> str:
    """The first setting that is wrong, by the name a person types."""
    first = fault.errors()[0]
    says = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
    if not first["loc"]:
        return says
    name = "_".join(str(part) for part in first["loc"]).upper()
    return f"{ENV_PREFIX}{name}: {says[:1].lower()}{says[1:]}"


def complain(message: str, advice: str = "") -> None:
    """One sentence on standard error, and the next step below it."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text.assemble(("error: ", "bold red"), printable(message)))
    if advice:
        console.print(Text.assemble(("  next: ", "bold"), printable(advice)))
