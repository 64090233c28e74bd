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
PLAIN_DRAFTS = "draft"

ADMITTED = (
    ("broken_logits", Validity.BROKEN_OUTPUT, "the engine drew tokens that are none"),
    ("kv_upgraded", Validity.CONFIG_MISMATCH, "the K cache has another type than was asked"),
    ("kv_cpu_fallback", Validity.CONFIG_MISMATCH, "part of the cache has another type than asked"),
    ("batch_capped", Validity.CONFIG_MISMATCH, "the engine capped batch and micro-batch"),
    (
        "draft_context_capped",
        Validity.CONFIG_MISMATCH,
        "the engine chose the drafter's context; say it in the flags, as -cd 256",
    ),
    ("fit_failed", Validity.CONFIG_MISMATCH, "the engine failed to fit its settings to the card"),
    ("dflash_slow_path", Validity.DEGRADED, "the drafter works on its slow path"),
)
"""What a healthy server's log admits and what a number is worth then, the gravest first."""


@dataclass(frozen=True)
class Asked:
    """What a boot was started with and must confirm; `kind` is how tokens are to be drafted."""

    alias: str
    context_tokens: int
    model_path: str
    slots: int = 1
    gpu_layers: int = 0
    kind: str = ""

    @property
    def speculation(self) -> bool:
        """Whether tokens are to be drafted."""
        return bool(self.kind)


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


def shortfall(
    asked: Asked, effective: Effective, facts: BootFacts, *, held_bytes: int | None = None
) -> tuple[Validity, str] | None:
    """Why no request of this boot can be `ok`, or None where it runs as asked.

    `held_bytes` is what the driver says the process holds on the cards; None is "not known".
    """
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
    if asked.gpu_layers and (why := _off_card(facts, held_bytes)):
        return Validity.PARTIAL_OFFLOAD, why
    splits = facts.graph_splits
    if asked.gpu_layers and offloaded == total and splits is not None and splits > NORMAL_SPLITS:
        return Validity.PARTIAL_OFFLOAD, f"{splits} graph splits: part of the graph ran elsewhere"
    if asked.speculation and (
        effective.speculative is False or SPECULATION_OFF & set(facts.warnings)
    ):
        return Validity.SPEC_INACTIVE, "speculation was asked and is off"
    if "spec_auto_enabled" in facts.warnings and asked.kind != PLAIN_DRAFTS:
        kind = asked.kind or "nothing"
        return Validity.CONFIG_MISMATCH, f"the engine drafts plainly where {kind} was asked"
    return next(
        ((validity, why) for name, validity, why in ADMITTED if name in facts.warnings), None
    )


def _off_card(facts: BootFacts, held_bytes: int | None) -> str:
    """Why nothing of it can be on the card: memory decides, then layers, and a warning last."""
    if held_bytes is not None:
        return "" if held_bytes else "the process holds nothing on the card"
    if facts.offloaded_layers is None and "no_usable_gpu" in facts.warnings:
        return "the server found no usable card and said of no layer that it is there"
    return ""


def _stated(value: int | None) -> str:
    return "nothing stated" if value is None else str(value)
