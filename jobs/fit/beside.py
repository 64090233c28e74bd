"""Bytes of what runs beside the target: its drafter and its projector."""

from __future__ import annotations

from jobs.fit.amounts import MIB, Band, Basis, exactly
from jobs.fit.buffers import F32, compute_band
from jobs.fit.caches import cache_band
from jobs.fit.component import Component, constant
from jobs.fit.dflash import block_compute, exchange, fusion_bytes
from jobs.fit.formats import cache_types
from jobs.fit.setup import Setup
from jobs.fit.shape import Shape
from jobs.known_engines import ANY_ENGINE, OLD_DFLASH

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
    """Weights, cache, exchange buffers and compute of a drafter.

    Engines that take the old form of DFlash keep no cache for it (src/llama-model.cpp:8554 of
    buun 1c4788192, :8530 of beellama 633cd34fb).
    """
    found = [_drafter_weights(setup, drafter)]
    keys = drafter.drafter
    if keys is None or keys.form != OLD_DFLASH or not setup.state.dflash_buffers_read:
        found.append(_drafter_cache(setup, drafter))
    if keys is None:
        _, tokens = _drafter_tokens(setup)
        step = min(setup.step_tokens, tokens)
        band, rivals = compute_band(drafter, step=step, context=tokens, slow=False)
        note = f"{step:,} tokens in a step, {tokens:,} in reach; not measured"
        return [*found, constant("drafter compute", band, Basis.INFERRED, note, rivals=rivals)]
    return [*found, exchange(setup, drafter), block_compute(setup, drafter)]


def _drafter_weights(setup: Setup, drafter: Shape) -> Component:
    """Its tensors, without the matrix that an engine keeps on the host with the input layer."""
    found = weights(drafter, "drafter weights")
    kept = fusion_bytes(drafter) if setup.state.dflash_fusion_on_host else 0
    if not kept or not drafter.tensors.whole:
        return found
    note = f"without dflash_fc ({kept // MIB} MiB), which stays on the host"
    return constant(found.name, exactly(found.loaded.likely - kept), Basis.FORMULA, note)


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
