"""What a model card and a config of strangers name: engines, commits, drafters; pure, bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scout.github.texts import number, part

TEXT_LIMIT = 256 * 1024
MOST_REFS = 20
MOST_LAYERS = 64
_LINK = re.compile(
    r"\bgithub\.com/(?P<repo>[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_][A-Za-z0-9._-]{0,99})"
    r"(?:/(?:commit|tree|pull/[0-9]{1,7}/commits)/(?P<commit>[0-9a-f]{7,40})\b"
    r"|/pull/(?P<pull>[0-9]{1,7})\b)?",
    re.ASCII,
)
_HASH = re.compile(r"(?<![0-9A-Za-z/_.=-])(?P<commit>[0-9a-f]{7,12}|[0-9a-f]{40})(?![0-9A-Za-z_-])")
_ARCHITECTURE = re.compile(r"dflash|dspark|eagle|draft|medusa|speculat", re.IGNORECASE)


def engine_refs(text: str) -> tuple[str, ...]:
    """Engines and commits a card names: `owner/name`, `owner/name@sha`, `owner/name#7`, `sha`."""
    text = text[:TEXT_LIMIT]
    found: dict[str, None] = {}
    for match in _LINK.finditer(text):
        repo = match["repo"].rstrip(".").removesuffix(".git")
        tail = f"@{match['commit']}" if match["commit"] else ""
        tail = f"#{match['pull']}" if match["pull"] else tail
        found[f"{repo}{tail}"] = None
        if len(found) == MOST_REFS:
            return tuple(found)
    for match in _HASH.finditer(text):
        commit = match["commit"]
        is_number = commit.isdigit()
        if not is_number and not any(ref.endswith(f"@{commit}") for ref in found):
            found[commit] = None
        if len(found) == MOST_REFS:
            break
    return tuple(found)


@dataclass(frozen=True)
class DrafterConfig:
    """What a `config.json` says of a drafter in safetensors."""

    architecture: str
    dialect: str
    block_size: int | None
    target_layers: tuple[int, ...] | None
    hidden: int | None


def drafter_config(text: str) -> DrafterConfig | None:
    """The drafter a config describes; None where it describes none."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return None
    named = part(config, "architectures")
    names = [name[:80] for name in named if isinstance(name, str)] if _is_list(named) else []
    name = next((name for name in names if _ARCHITECTURE.search(name)), "")
    dflash = part(config, "dflash_config")
    if not name and not isinstance(dflash, Mapping):
        return None
    return DrafterConfig(
        architecture=name or (names[0] if names else ""),
        dialect=_dialect(name, dflash),
        block_size=number(part(config, "block_size")) or number(part(dflash, "block_size")),
        target_layers=_layers(part(dflash, "target_layer_ids")),
        hidden=number(part(config, "hidden_size")),
    )


def _dialect(name: str, dflash: object) -> str:
    """In words of the watch: these files are of no loader's dialect until they are converted."""
    for word in ("dspark", "eagle3", "eagle", "dflash"):
        if word in name.lower().replace("-", "").replace("_", ""):
            return f"{word} safetensors"
    return "dflash safetensors" if isinstance(dflash, Mapping) else "safetensors"


def _layers(value: Any) -> tuple[int, ...] | None:
    if not _is_list(value) or len(value) > MOST_LAYERS:
        return None
    layers = [number(each) for each in value]
    return None if None in layers else tuple(each for each in layers if each is not None)


def _is_list(value: object) -> bool:
    return isinstance(value, list)
