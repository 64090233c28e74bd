"""The root command: mounts every room's commands and turns errors into one clear sentence."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from jobs import log
from jobs.cli import run, work
from jobs.errors import ScoutError

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
    app.add_typer(run.app)
    app.add_typer(work.app)
    if wanted not in _names(run.app) | _names(work.app):
        for entry in sorted(entry_points(group=COMMAND_GROUP), key=lambda entry: entry.name):
            app.add_typer(entry.load())
    return app


def _names(app: typer.Typer) -> set[str]:
    commands = {c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands}
    return commands | {str(group.name) for group in app.registered_groups}


def main() -> None:
    """Run the command line; exit 2 for a wrong wish, 1 for a failure."""
    log.configure()
    try:
        build_app(next(iter(sys.argv[1:]), ""))()
    except ScoutError as fault:
        complain(fault.message, fault.advice)
        sys.exit(fault.exit_code)
    except ValidationError as fault:
        first = fault.errors()[0]
        name = "_".join(str(part) for part in first["loc"]).upper()
        complain(f"FORKSCOUT_{name or '*'}: {first['msg']}", "see .env.example for every setting")
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        complain("stopped")
        sys.exit(130)
    except OSError as fault:
        complain(str(fault), "check the disk, the permissions and FORKSCOUT_HOME")
        sys.exit(1)


def complain(message: str, advice: str = "") -> None:
    """One sentence on standard error, and the next step below it."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text.assemble(("error: ", "bold red"), message))
    if advice:
        console.print(Text.assemble(("  next: ", "bold"), advice))
