"""What a running server admits to, and where that falls short of what was asked; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.dialect import wire
from jobs.model import BootFacts, Effective, Validity

CONTEXT_STEP = 256  # servers round an allocated context up to this many tokens
NORMAL_SPLITS = 2
"""Of a graph whose layers are all on the card: one for the embedding on the host, one for the rest.
More of them mean that an operation has no kernel there."""
SPECULATION_OFF = frozenset({"spec_off_multimodal", "spec_off_context"})


@dataclass(frozen=True)
class Asked:
    """What a boot was started with and must confirm."""

    alias: str
    context_tokens: int
    model_path: str
    slots: int = 1
    gpu_layers: int = 0
    speculation: bool = False


def read_settings(props: Mapping[str, Any], slots: Sequence[Mapping[str, Any]]) -> Effective:
    """Settings from `/props` and `/slots`; the smallest per-slot context counts."""
    props = wire.mapping(props)
    defaults = wire.mapping(props.get("default_generation_settings"))
    rows = [wire.mapping(slot) for slot in wire.sequence(slots)]
    contexts = [wire.count(defaults.get("n_ctx")), *(wire.count(row.get("n_ctx")) for row in rows)]
    stated = [context for context in contexts if context is not None]
    drafting = [wire.flag(row.get("speculative")) for row in rows]
    known = [value for value in drafting if value is not None]
    return Effective(
        context_tokens=min(stated) if stated else None,
        slots=wire.count(props.get("total_slots")) or len(rows) or None,
        speculative=all(known) if known else None,
        alias=wire.shown(props.get("model_alias")),
        model_path=wire.shown(props.get("model_path"), 4096),
        build_info=wire.shown(props.get("build_info")),
    )


def shortfall(asked: Asked, effective: Effective, facts: BootFacts) -> tuple[Validity, str] | None:
    """Why no request of this boot can be `ok`, or None where it runs as asked."""
    if effective.alias != asked.alias:
        return Validity.WRONG_SERVER, f"the server calls itself {effective.alias!r}"
    if effective.model_path not in (None, asked.model_path):
        return Validity.WRONG_SERVER, f"the server serves {effective.model_path!r}"
    rounded = -(-asked.context_tokens // CONTEXT_STEP) * CONTEXT_STEP
    if effective.context_tokens not in (asked.context_tokens, rounded):
        return Validity.CONFIG_MISMATCH, (
            f"{asked.context_tokens} tokens of context asked, "
            f"{_stated(effective.context_tokens)} per slot in effect"
        )
    if effective.slots != asked.slots:
        return Validity.CONFIG_MISMATCH, (
            f"{asked.slots} slot asked, {_stated(effective.slots)} in effect"
        )
    offloaded, total = facts.offloaded_layers, facts.total_layers
    if offloaded is not None and total is not None and offloaded < min(total, asked.gpu_layers):
        return Validity.PARTIAL_OFFLOAD, f"{offloaded}/{total} layers on the GPU"
    splits = facts.graph_splits
    if asked.gpu_layers and offloaded == total and splits is not None and splits > NORMAL_SPLITS:
        return Validity.PARTIAL_OFFLOAD, f"{splits} graph splits: part of the graph ran elsewhere"
    if asked.speculation and (
        effective.speculative is False or SPECULATION_OFF & set(facts.warnings)
    ):
        return Validity.SPEC_INACTIVE, "speculation was asked and is off"
    return None


def _stated(value: int | None) -> str:
    return "nothing stated" if value is None else str(value)
