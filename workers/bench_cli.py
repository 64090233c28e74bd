"""The command that benches a build on a machine of its own; options are the plain command's."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.errors import UsageError
from workers import offline_command

app = typer.Typer()


@app.command("bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(
    context: typer.Context,
    offline: Annotated[
        bool, typer.Option("--offline", help="without queue and database, into one file")
    ] = False,
    options: Annotated[
        bool, typer.Option("--options", help="list every option of --offline")
    ] = False,
) -> None:
    """Measure a built server on this machine and write one result file.

    Every --context with every --kv and every --ubatch is measured; --scenario ladder really fills
    the context to each --depth. `forkscout bench --options` lists all options. A result comes
    home with `forkscout import`.

    Example: forkscout bench --offline --build DIR --model FILE --scenario decode-128
    --context 4096 --out result.json
    """
    if options:
        typer.echo(offline_command.parser().format_help())
        return
    if not offline:
        raise UsageError(
            "bench works on this machine alone, with --offline",
            advice="For the queue use: forkscout submit bench.",
        )
    code = offline_command.main(context.args)
    if code:
        raise typer.Exit(code)
