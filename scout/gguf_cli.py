"""The command that reads a model file's header and prints what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobs.config import Settings
from jobs.fit.amounts import in_words
from jobs.gguf.facts import ModelFacts, PerLayer
from jobs.terminal import printable
from scout.hub.reading import reader
from scout.weight_places import Reading

app = typer.Typer()

MOST_SHOWN_LAYERS = 12


@app.command("gguf")
def gguf(
    place: Annotated[
        str,
        typer.Argument(help="a path, an http(s) address, hf:OWNER/REPO/FILE, or OWNER/REPO:QUANT"),
    ],
    full: Annotated[
        bool, typer.Option("--full", help="read to the end: tensor types and sizes by place")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for programs")] = False,
) -> None:
    """Show what a model file is, from its header alone; 64 KiB of most files.

    Example: forkscout gguf https://host/Qwen3.6-27B-Q4_K_M.gguf --full
    """
    reading = reader(Settings())(place, full)
    if as_json:
        typer.echo(json.dumps(_as_json(reading), indent=2, allow_nan=False))
        return
    table = Table("fact", "value", box=None, show_header=False)
    for name, value in _lines(reading):
        table.add_row(name, Text(_one_line(value)))
    Console().print(table)
    for note in reading.facts.notes:
        typer.echo(f"note: {printable(note)}")


def _as_json(reading: Reading) -> dict[str, object]:
    header = reading.header
    return {
        "place": reading.place,
        "file_name": reading.file_name,
        "version": header.version,
        "key_count": header.kv_count,
        "complete": header.complete,
        "bytes_read": header.bytes_read,
        "requests": header.requests,
        "facts": {**asdict(reading.facts), "quantisation": reading.facts.quantisation},
    }


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _lines(reading: Reading) -> Iterator[tuple[str, str]]:
    facts, header = reading.facts, reading.header
    yield "file", reading.file_name
    yield "role", facts.role
    yield "architecture", facts.architecture or "not said"
    yield "dialect", facts.dialect
    yield from _said("name", facts.name)
    yield from _said("size label", facts.size_label)
    for base in facts.base_models:
        yield "made from", " ".join(filter(None, (base.organization, base.name, base.repo_url)))
    yield "quantisation", _quantisation(facts)
    yield from _said("layers", facts.block_count)
    yield from _said("MTP heads", facts.nextn_predict_layers)
    yield from _said("context", facts.context_length)
    yield from _said("width", facts.embedding_length)
    yield from _said("heads", facts.head_count)
    yield from _said("KV heads", facts.head_count_kv)
    yield from _said("key length", facts.key_length)
    yield from _said("value length", facts.value_length)
    yield from _said("sliding window", facts.sliding_window)
    yield from _said("window pattern", facts.sliding_window_pattern)
    yield from _said("full attention every", facts.full_attention_interval)
    yield from _said("experts", facts.expert_count)
    yield from _said("experts used", facts.expert_used_count)
    yield from _parts(facts)
    yield from _said("vocabulary", facts.vocabulary_size)
    yield from _said("tokenizer", " ".join((facts.tokenizer_model, facts.tokenizer_pre)).strip())
    yield "tensors", f"{facts.tensor_count:,}"
    yield from _sizes(facts)
    asked = f" in {_counted(header.requests, 'request')}" if "://" in reading.place else ""
    yield "read", f"{header.bytes_read:,} bytes{asked}"


def _parts(facts: ModelFacts) -> Iterator[tuple[str, str]]:
    if facts.ssm:
        words = ((name.replace("_", " "), value) for name, value in asdict(facts.ssm).items())
        yield "recurrent", ", ".join(f"{name} {value}" for name, value in words if value)
    if facts.dflash:
        yield from _said("draft block", facts.dflash.block_size)
        yield from _said("mask token", facts.dflash.mask_token_id)
        yield from _said("target layers", facts.dflash.target_layers)
        yield from _said("target features", facts.dflash.n_target_features)
    if facts.clip:
        yield from _said("projects to", facts.clip.projection_dim)
        yield from _said("projector", ", ".join(facts.clip.projector_types))
        sees = {"images": facts.clip.has_vision_encoder, "sound": facts.clip.has_audio_encoder}
        yield from _said("takes", ", ".join(word for word, yes in sees.items() if yes))


def _sizes(facts: ModelFacts) -> Iterator[tuple[str, str]]:
    for share in facts.tensor_types or ():
        size = "size unknown" if share.size_bytes is None else in_words(share.size_bytes)
        yield f"  {share.type_name}", f"{size} in {_counted(share.tensors, 'tensor')}"
    if facts.places:
        for word in ("token_embd", "output", "blocks", "nextn", "other"):
            if size_bytes := getattr(facts.places, word):
                yield f"  in {word}", in_words(size_bytes)
    if facts.size_bytes is not None:
        yield "file size", in_words(facts.size_bytes)
    if facts.shard:
        yield "part", f"{facts.shard.number} of {facts.shard.count}"
    if facts.split and facts.split.tensors is not None:
        yield "tensors of all parts", f"{facts.split.tensors:,}"


def _quantisation(facts: ModelFacts) -> str:
    said = [f"{facts.name_label} by its name"] if facts.name_label else []
    said += [f"{facts.file_type_name} by general.file_type"] if facts.file_type_name else []
    return ", ".join(said) or "not said so far"


def _said(name: str, value: PerLayer | str) -> Iterator[tuple[str, str]]:
    if value is None or value == "":
        return
    if isinstance(value, tuple):
        cut = ", ..." if len(value) > MOST_SHOWN_LAYERS else ""
        yield name, ", ".join(f"{each:,}" for each in value[:MOST_SHOWN_LAYERS]) + cut
    else:
        yield name, value if isinstance(value, str) else f"{value:,}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + "s" * (count != 1)
