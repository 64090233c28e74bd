"""The command that benches without a queue; options are those of the plain commands below it."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.errors import UsageError
from workers import offline_command, url_command

app = typer.Typer()


@app.command("bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(
    context: typer.Context,
    offline: Annotated[
        bool, typer.Option("--offline", help="a build on this machine alone, into one file")
    ] = False,
    url: Annotated[
        str, typer.Option("--url", help="a server that runs already, as http://127.0.0.1:9931")
    ] = "",
    options: Annotated[
        bool, typer.Option("--options", help="list every option of --offline and of --url")
    ] = False,
) -> None:
    """Measure a server without queue and database: one that runs, or a build on this machine.

    With --url a llama-server, vLLM or OpenAI-compatible server is asked as it stands, and with
    --against a second one in turns. With --offline a build is started for every --context, --kv
    and --ubatch, and one result file is written; it comes home with `forkscout import`.
    `forkscout bench --options` lists all options; both take --scenario, and --url takes --json.

    Example: forkscout bench --url http://127.0.0.1:9931 --scenario decode-128
    """
    if options:
        typer.echo(url_command.parser().format_help())
        typer.echo(offline_command.parser().format_help())
        return
    if offline == bool(url):
        raise UsageError(
            "bench needs either --url or --offline",
            advice="for the queue use: forkscout submit bench",
        )
    words = ["--url", url, *context.args] if url else context.args
    code = url_command.main(words) if url else offline_command.main(words)
    if code:
        raise typer.Exit(code)
