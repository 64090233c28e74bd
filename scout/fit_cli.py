"""Commands that judge weights before they are fetched: fit and pair; they print, others decide."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobs.config import Settings
from jobs.fit.amounts import Band, mib, parse_amount
from jobs.fit.estimate import Fit
from jobs.fit.formats import asked_types
from jobs.fit.setup import Card, Setup
from jobs.fit_answers import FitAnswer, answer
from jobs.fit_answers import as_json as fit_as_json
from jobs.pairing import Answer, Finding, Pairing, pair
from jobs.terminal import printable
from scout.engine_states import state_meant
from scout.hub.reading import reader
from scout.measured_boots import lessons_at_hand
from scout.weight_shapes import shape_at

app = typer.Typer()

NOT = 1
OPEN = 3
RIVALRY = ("the larger", "counts")
EXIT_OF_FIT = {Fit.FITS: 0, Fit.DOES_NOT_FIT: NOT, Fit.TOO_CLOSE: OPEN}
EXIT_OF_PAIR = {Answer.COMPATIBLE: 0, Answer.INCOMPATIBLE: NOT, Answer.CANNOT_TELL: OPEN}

Target = Annotated[
    str,
    typer.Option(
        help="the model: a path, an http(s) address, hf:OWNER/REPO/FILE, or OWNER/REPO:QUANT"
    ),
]
Drafter = Annotated[str, typer.Option(help="a drafter beside it")]
Mmproj = Annotated[str, typer.Option(help="a projector beside it")]
Engine = Annotated[
    str, typer.Option(help="a name, or name@version, commit or day, as beellama@v0.1.2")
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON for programs")]


@app.command("fit")
def fit(
    target: Target,
    gpu: Annotated[str, typer.Option(help="memory of the card, as 24GiB")],
    context: Annotated[int, typer.Option(help="tokens")],
    drafter: Drafter = "",
    mmproj: Mmproj = "",
    kv: Annotated[str, typer.Option(help="cache type, or K/V as q8_0/turbo3")] = "f16",
    batch: Annotated[int, typer.Option(help="tokens of a batch")] = 2048,
    ubatch: Annotated[int, typer.Option(help="tokens of a micro-batch")] = 512,
    parallel: Annotated[int, typer.Option(help="slots of the server")] = 1,
    draft_context: Annotated[
        int | None, typer.Option(help="tokens of the drafter; else the engine's own rule")
    ] = None,
    cross_context: Annotated[
        int | None, typer.Option(help="tokens a DFlash drafter sees of the target; else 512")
    ] = None,
    engine: Engine = "",
    reserve: Annotated[
        str, typer.Option(help="what the driver keeps, if measured, as 400MiB")
    ] = "",
    held: Annotated[str, typer.Option(help="what other programs hold of the card")] = "",
    cuda_context: Annotated[
        str, typer.Option(help="a bare CUDA context on this card, if measured")
    ] = "",
    raw: Annotated[
        bool, typer.Option("--raw", help="leave out what measured boots of this engine taught")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge from headers alone whether a model fits a card: exit 0 fits, 1 not, 3 too close.

    With a database at hand, what boots of this engine measured corrects the estimate.

    Example: forkscout fit --target Qwen3.6-27B-UD-Q3_K_XL.gguf --drafter dflash-q8_0.gguf
    --kv turbo3 --context 262144 --ubatch 256 --gpu 24GiB --engine beellama@v0.1.2
    """
    types = asked_types(kv)
    card = Card(
        total_bytes=parse_amount(gpu, what="the card"),
        reserve_bytes=parse_amount(reserve, what="the reserve") if reserve else None,
        foreign_bytes=parse_amount(held, what="what others hold") if held else 0,
        context_bytes=parse_amount(cuda_context, what="the context") if cuda_context else None,
    )
    read = reader(Settings())
    setup = Setup(
        state=state_meant(engine, cache_types=types).state,
        card=card,
        key=types[0],
        value=types[1],
        context=context,
        batch=batch,
        ubatch=ubatch,
        sequences=parallel,
        drafter_context=draft_context,
        cross_context=cross_context,
        target=shape_at(target, read=read),
        drafter=shape_at(drafter, read=read) if drafter else None,
        projector=shape_at(mmproj, read=read) if mmproj else None,
    )
    given = answer(setup, None if raw or not engine else lessons_at_hand())
    if as_json:
        typer.echo(json.dumps(fit_as_json(given), indent=2, allow_nan=False))
    else:
        _tell_fit(given)
    raise typer.Exit(EXIT_OF_FIT[Fit.DOES_NOT_FIT if given.obstacles else given.verdict.fit])


@app.command("pair")
def pair_(
    target: Target,
    engine: Engine,
    drafter: Drafter = "",
    mmproj: Mmproj = "",
    as_json: AsJson = False,
) -> None:
    """Say whether an engine loads these files together: exit 0 yes, 1 no, 3 cannot tell.

    Example: forkscout pair --target Qwen3.6-27B-MTP.gguf --engine beellama@v0.1.2
    """
    meant = state_meant(engine)
    read = reader(Settings())
    found = pair(
        shape_at(target, full=False, read=read),
        state=meant.state,
        archs=meant.archs,
        drafter=shape_at(drafter, full=False, read=read) if drafter else None,
        projector=shape_at(mmproj, full=False, read=read) if mmproj else None,
    )
    if as_json:
        facts = {"engine": _engine_as_json(meant.state.title, meant.state.source), **asdict(found)}
        typer.echo(json.dumps(facts, indent=2, allow_nan=False))
    else:
        _tell_pair(found, engine=meant.state.title, source=meant.state.source)
    raise typer.Exit(EXIT_OF_PAIR[found.answer])


def _tell_fit(given: FitAnswer) -> None:
    found, verdict = given.found, given.verdict
    table = Table("MiB", box=None)
    for name in ("after load", "filled", "least", "most"):
        table.add_column(name, justify="right")
    table.add_column("from")
    for line in found.components:
        table.add_row(*_row(line.name, line.loaded, line.filled), line.basis)
        for (name, size_bytes), word in zip(line.rivals, RIVALRY, strict=False):
            table.add_row(f"  {name}", mib(size_bytes), "", "", "", word)
    table.add_row(*_row("in all", found.loaded, found.filled), "", style="bold")
    usable = verdict.usable
    table.add_row(*_row("usable", usable, usable), "")
    Console().print(table)
    for line in found.components:
        if line.note:
            typer.echo(printable(f"{line.name}: {line.note}"))
    for note in found.notes:
        typer.echo(printable(f"note: {note}"))
    typer.echo(f"pinned on the host: up to {mib(found.host.high)} MiB")
    typer.echo(given.sentence_of_largest)
    typer.echo(printable(verdict.sentence))
    for obstacle in given.obstacles:
        typer.echo(printable(obstacle))


def _row(name: str, loaded: Band, filled: Band) -> tuple[str, ...]:
    return name, *(mib(each) for each in (loaded.likely, filled.likely, filled.low, filled.high))


def _tell_pair(found: Pairing, *, engine: str, source: str) -> None:
    table = Table("reason", "answer", "why", box=None)
    for each in found.findings:
        table.add_row(each.name, each.answer, _text(_why(each)))
    Console().print(table)
    typer.echo(printable(f"{found.answer} with {engine} ({source})"))


def _why(finding: Finding) -> str:
    if finding.would_tell:
        return f"{finding.sentence}; would tell: {finding.would_tell}"
    return finding.sentence


def _text(text: str) -> Text:
    return Text(" ".join(printable(text).split()))


def _engine_as_json(title: str, source: str) -> dict[str, str]:
    return {"state": title, "source": source}
