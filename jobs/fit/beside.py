"""Bytes of what runs beside the target: its drafter and its projector."""

from __future__ import annotations

from jobs.fit.amounts import MIB, Band, Basis, exactly
from jobs.fit.buffers import F32, compute_band
from jobs.fit.caches import cache_band
from jobs.fit.component import Component, constant
from jobs.fit.formats import cache_types
from jobs.fit.setup import Setup
from jobs.fit.shape import LayerKind, Shape
from jobs.known_engines import ANY_ENGINE

DEFAULT_CROSS_CONTEXT = 512
"""Tokens of the target's hidden states that a DFlash drafter sees (llama-context.cpp:81)."""

VERIFY_TOKENS = 25
DRAFT_SLOTS = 8
"""LLAMA_DFLASH_MAX_VERIFY_TOKENS and LLAMA_DFLASH_MAX_SLOTS (include/llama.h of ba1fdce59)."""

DEFAULT_BLOCK = 16

WARMUP_PATCHES = 46 * 46 * 4
LARGEST_PATCHES = 4096 * 4
"""Patches of the warm-up image and of the largest image of Qwen's projectors: four to a token
(tools/mtmd/clip.cpp:1361 of beellama ba1fdce59)."""

WIDEST_WEIGHT_BYTES = 4
LARGEST_HEADER_BYTES = 64 * MIB
"""Where only a file's size is known, an embedding of f32 and a header of that size may be in it."""

UNKNOWN_PROJECTOR = Band(0, 256 * MIB, 1024 * MIB)
"""Buffers of a projector whose header does not say its widths; an assumption."""


def weights(shape: Shape, name: str) -> Component:
    """A file's tensors as far as they go to the card."""
    if not shape.tensors.whole:
        total = shape.tensors.total
        beside = shape.vocabulary * shape.embedding * WIDEST_WEIGHT_BYTES + LARGEST_HEADER_BYTES
        known = bool(shape.vocabulary and shape.embedding)
        band = Band(max(0, total - beside) if known else 0, total, total)
        return constant(name, band, Basis.INFERRED, "only the file's size was read: the most")
    on_card = max(0, shape.tensors.total - shape.tensors.on_host)
    note = ""
    if shape.tensors.on_host:
        note = f"without token_embd ({shape.tensors.on_host // MIB} MiB), which stays on the host"
    return constant(name, exactly(on_card), Basis.FORMULA, note)


def drafting(setup: Setup, drafter: Shape) -> list[Component]:
    """Weights, cache, exchange buffers and compute of a drafter."""
    found = [weights(drafter, "drafter weights"), _drafter_cache(setup, drafter)]
    if drafter.drafter is None:
        _, tokens = _drafter_tokens(setup)
        step = min(setup.step_tokens, tokens)
        band, rivals = compute_band(drafter, step=step, context=tokens, slow=False)
        note = f"{step:,} tokens in a step, {tokens:,} in reach; not measured"
        return [*found, constant("drafter compute", band, Basis.INFERRED, note, rivals=rivals)]
    return [*found, _exchange(setup, drafter), _dflash_compute(setup, drafter)]


def _drafter_tokens(setup: Setup) -> tuple[int, int]:
    """Least and most context of the drafter: a wish, the engine's rule, or not known."""
    asked = setup.drafter_context
    rule = setup.state.drafter_context_tokens if asked is None else asked
    if rule is None:
        return min(256, setup.cells_per_sequence), setup.cells_per_sequence
    tokens = rule or setup.cells_per_sequence
    return tokens, tokens


def _drafter_cache(setup: Setup, drafter: Shape) -> Component:
    types = cache_types(
        ANY_ENGINE, key="f16", value="f16", heads=drafter.heads, heads_kv=drafter.heads_kv
    )
    least, most = _drafter_tokens(setup)
    step = setup.step_tokens
    small = cache_band(drafter, types, context=least, ubatch=step)
    large = cache_band(drafter, types, context=most, ubatch=step)
    band = Band(small.low, large.likely, large.high)
    if least == most:
        note = f"f16, {most:,} tokens"
        return constant("drafter cache", band, Basis.FORMULA, note)
    note = f"f16, {least:,} to {most:,} tokens: the rule of {setup.state.title} is unread"
    return constant("drafter cache", band, Basis.INFERRED, note)


def _exchange(setup: Setup, drafter: Shape) -> Component:
    """Ring of hidden states with its staging, projected keys, tapes to take a draft back."""
    keys = drafter.drafter
    cross = setup.cross_context or DEFAULT_CROSS_CONTEXT
    width = setup.target.embedding
    taps = len(keys.target_layers or ()) if keys else 0
    ring = 2 * F32 * cross * width * taps
    projected = (
        F32
        * cross
        * sum(layer.heads_kv * (layer.key_length + layer.value_length) for layer in drafter.layers)
    )
    hidden = F32 * VERIFY_TOKENS * width * taps
    tape = 0
    state = setup.target.recurrent
    if state is not None:
        layers = sum(layer.kind is LayerKind.RECURRENT for layer in setup.target.layers)
        rank = state.time_step_rank
        values = state.state_size * (state.group_count + rank) + 2 * rank + state.channels
        tape = F32 * VERIFY_TOKENS * layers * values
    size = ring + projected + hidden + tape
    note = f"ring of {taps} layers of {cross:,} tokens, projected keys, tape"
    if setup.state.dflash_buffers_read:
        return constant("drafter exchange", exactly(size), Basis.FORMULA, note)
    return constant(
        "drafter exchange",
        Band(0, size, 2 * size),
        Basis.INFERRED,
        f"{note} as in beellama 0.1; unread in {setup.state.title}",
    )


def _dflash_compute(setup: Setup, drafter: Shape) -> Component:
    """The drafter borrows the target's output, so its logits are as wide as the target's."""
    keys = drafter.drafter
    block = (keys.block_size if keys else None) or DEFAULT_BLOCK
    cross = setup.cross_context or DEFAULT_CROSS_CONTEXT
    features = (keys.target_features if keys else None) or setup.target.embedding
    outputs = setup.target.vocabulary + setup.target.embedding
    least = F32 * block * outputs
    step = DRAFT_SLOTS * block
    if not setup.state.dflash_buffers_read:
        step = max(step, setup.step_tokens)
    likely = F32 * step * outputs + F32 * cross * features
    most = likely + F32 * cross * (features + 2 * drafter.feed_forward)
    note = f"logits of {step:,} tokens and {cross:,} tokens of features; not measured"
    return constant("drafter compute", Band(least, likely, most), Basis.INFERRED, note)


def projecting(projector: Shape) -> list[Component]:
    """Weights and buffers of a projector."""
    keys = projector.projector
    if keys is None or not keys.embedding or not keys.feed_forward:
        note = "the header names no widths: an assumption"
        buffers = constant("projector buffers", UNKNOWN_PROJECTOR, Basis.INFERRED, note)
        return [weights(projector, "projector weights"), buffers]
    loaded = _projector_buffers(keys.embedding, keys.feed_forward, WARMUP_PATCHES)
    largest = _projector_buffers(keys.embedding, keys.feed_forward, LARGEST_PATCHES)
    filled = Band(loaded.low, loaded.likely, largest.high)
    note = "warm-up image; the most is with the largest image; not measured"
    buffers = Component("projector buffers", loaded, filled, Basis.INFERRED, note)
    return [weights(projector, "projector weights"), buffers]


def _projector_buffers(width: int, feed_forward: int, patches: int) -> Band:
    """f32 activations of one layer: its feed-forward and from one to four of its width."""
    return Band(
        F32 * patches * (feed_forward + width),
        F32 * patches * (feed_forward + 3 * width),
        F32 * patches * (2 * feed_forward + 4 * width),
    )
