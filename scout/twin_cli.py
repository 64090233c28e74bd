"""The command that writes a model's twin from its header: the same shape, random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs import twin_file
from jobs.config import Settings
from jobs.gguf.header import Header
from jobs.gguf.reader import Depth, read_header
from jobs.hub import Hub
from jobs.terminal import json_text, printable
from jobs.twin.plan import Twin, plan
from scout.hub.desk import open_client
from scout.hub.places import is_hub_place, locate
from scout.weight_places import Opened, opened

app = typer.Typer()

TELL_BYTES = 2**30


@app.command("twin")
def twin(
    model: Annotated[
        str,
        typer.Argument(help="a path, an http(s) address, hf:OWNER/REPO/FILE, or OWNER/REPO:QUANT"),
    ],
    out: Annotated[Path, typer.Option("--out", help="the GGUF file to write")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for programs")] = False,
) -> None:
    """Write a file of a model's shape with random weights, from its header alone.

    It loads and runs like the model, takes the same memory and about the same time, and says
    nothing that means anything: measure on your own card before you download. It carries a tag
    and never ranks beside real weights. An interrupted one goes on when it is asked for again.

    Example: forkscout twin https://host/Qwen3.6-27B-Q4_K_M.gguf --out twin.gguf
    """
    made, name = _planned(model)
    if not as_json:
        size = f"{len(made.tensors):,} tensors, {made.size_bytes:,} bytes"
        typer.echo(f"twin of {printable(name)}: {size}")
    kept = twin_file.write(made, out, tell=(lambda _done, _all: None) if as_json else _Telling())
    if as_json:
        facts = {"path": str(out), "of": name, "tensors": len(made.tensors)}
        typer.echo(json_text({**facts, "size_bytes": made.size_bytes, "kept_bytes": kept}))
        return
    resumed = f", {kept:,} of them were there already" if kept else ""
    typer.echo(f"{out}: {made.size_bytes:,} bytes{resumed}")


def _planned(model: str) -> tuple[Twin, str]:
    settings = Settings()
    place, token = model, ""
    if is_hub_place(model):
        settings.prepare()
        place = locate(model, lambda: open_client(settings)).url
    if "://" in place:
        token = Hub(settings.hf_endpoint, settings.hf_token).token_for(place)
    with opened(place, token=token) as file:
        header = _header(file)
        return plan(header, file.fetch, of=file.file_name), file.file_name


def _header(file: Opened) -> Header:
    return read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL, check=file.check)


class _Telling:
    """A line for each GiB, so that a log stays short."""

    def __init__(self) -> None:
        self._next = TELL_BYTES

    def __call__(self, done: int, total: int) -> None:
        if done >= self._next:
            typer.echo(f"  {done / total:.0%} of {total:,} bytes")
            self._next = done // TELL_BYTES * TELL_BYTES + TELL_BYTES
