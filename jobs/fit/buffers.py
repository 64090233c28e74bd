"""Bytes that a server takes beside weights and caches: compute, copies, its CUDA context.

The formulas are those of docs/models.md: fitted to 67 boots of beellama v0.1.2 with one shape
(Qwen3.6-27B) on one card, and right within 3 MiB in 64 of them.
"""

from __future__ import annotations

from jobs.fit.amounts import MIB, NOTHING, Band, Basis, around, exactly
from jobs.fit.component import Component, constant
from jobs.fit.formats import COPIED_AS_FILLED, COPIED_AT_LOAD, SLOW_COMPUTE, is_turbo, padded_head
from jobs.fit.setup import MEASURED_CONTEXT_BYTES, Setup
from jobs.fit.shape import LayerKind, Shape

MEASURED_ARCHITECTURES = frozenset({"qwen35"})

F32, F16 = 4, 2
MASK_BYTES = F32 + F16
"""One mask entry in f32 and its f16 copy for flash attention (src/llama-graph.cpp:24)."""

QUANTISED_EXTRA_BYTES = 256 * 1024
"""Seen with q8_0 and q4_0 in every boot (docs/models.md, formula)."""

FIT_ERROR_BYTES = 3 * MIB
"""How far off the formula was in 64 of 67 boots."""

OTHER_ENGINE_SHARE = 0.05
"""Doubt of the formula in an engine of the chain that was not measured: the graph code is shared,
and the chance that a buffer of the micro-batch's width is added or saved is not."""

KERNEL_BYTES = {"plain": 75 * MIB, "quantised": 175 * MIB, "turbo": 82 * MIB}
"""Kernels and handles beside the bare context: 74-76, 174-177 and 80-85 MiB, measured."""

FIRST_REQUEST = Band(16 * MIB, 18 * MIB, 18 * MIB)
"""Growth with the first request (docs/models.md, measured)."""

WIDE_STEP_BYTES = 22 * MIB
WIDE_STEP_TOKENS = 2048
NARROW_STEP_TOKENS = 256
"""Growth at a micro-batch of 2048, none at 256 (docs/models.md, measured); a line between."""


def compute(setup: Setup) -> Component:
    """The compute buffer: logits or mask and work buffers, whichever is larger, never both."""
    band, rivals = compute_band(
        setup.target,
        step=setup.step_tokens,
        context=setup.cells_per_sequence,
        slow=any(name in SLOW_COMPUTE for name in setup.types.both),
    )
    note = f"{setup.step_tokens:,} tokens in a step, {setup.cells_per_sequence:,} in reach"
    basis, likely = Basis.INFERRED, band.likely
    if setup.target.architecture not in MEASURED_ARCHITECTURES:
        note = f"{note}; measured with qwen35 only"
    elif setup.state.memory_measured:
        band = around(likely, below=FIT_ERROR_BYTES, above=FIT_ERROR_BYTES)
        basis = Basis.FORMULA
    else:
        off = round(OTHER_ENGINE_SHARE * likely)
        band = around(likely, below=off, above=off)
        note = f"{note}; measured in beellama only"
    return constant("compute", band, basis, note, rivals=rivals)


def compute_band(
    shape: Shape, *, step: int, context: int, slow: bool
) -> tuple[Band, tuple[tuple[str, int], ...]]:
    """Compute of a shape, and what shares the buffer.

    The doubt is what lives at once: at most logits or mask, beside the work buffers and two of the
    feed-forward.
    """
    width, heads = shape.embedding, shape.heads * shape.key_length
    logits = F32 * step * (shape.vocabulary + width)
    mask = MASK_BYTES * step * context
    buffers = 2 * width + (4 if slow else 3) * heads
    work = F32 * step * buffers + (QUANTISED_EXTRA_BYTES if slow else 0)
    likely = max(logits, mask + work)
    low = max(F32 * step * shape.vocabulary, mask)
    high = max(logits, mask) + work + F32 * step * 2 * shape.feed_forward
    return Band(low, likely, high), (("logits", logits), ("mask + work", mask + work))


def work_copy(setup: Setup) -> Component | None:
    """The f16 copy of one layer's keys and values that flash attention makes; in no log."""
    at_load = sum(_copied(setup, COPIED_AT_LOAD))
    if not at_load:
        return None
    size = at_load * setup.cells_per_sequence
    note = "f16 copy of one layer, made at warm-up, not in the log"
    if setup.state.memory_measured:
        return constant("work copy", exactly(size), Basis.MEASURED, note)
    band = Band(0, size, size)
    return constant("work copy", band, Basis.INFERRED, f"{note}; measured on beellama only")


def growth(setup: Setup) -> Component:
    """What comes after the server is healthy: the first request, then the filled depth."""
    copied = sum(_copied(setup, COPIED_AS_FILLED)) * setup.filled
    above = max(0, setup.step_tokens - NARROW_STEP_TOKENS)
    wide = round(WIDE_STEP_BYTES * above / (WIDE_STEP_TOKENS - NARROW_STEP_TOKENS))
    turbo = any(is_turbo(name) for name in setup.types.both)
    heads = setup.target.heads * setup.target.key_length
    queries = F32 * heads * min(setup.filled, setup.step_tokens) if turbo else 0
    filled = FIRST_REQUEST + exactly(max(wide, copied) + queries)
    note = f"first request, then {setup.filled:,} filled tokens"
    if setup.filled == 0:
        filled = NOTHING
    return Component("growth", NOTHING, filled, Basis.MEASURED, note)


def base(setup: Setup) -> Component:
    """The process itself: CUDA context, kernels and handles."""
    kernels = KERNEL_BYTES[_kernel_kind(setup)]
    measured = setup.card.context_bytes
    if measured is not None:
        band = around(measured + kernels, below=FIT_ERROR_BYTES, above=FIT_ERROR_BYTES)
        return constant("CUDA context", band, Basis.MEASURED, "context measured on this card")
    context = MEASURED_CONTEXT_BYTES
    band = Band(context // 2 + kernels, context + kernels, context * 5 // 4 + kernels)
    note = "518 MiB context of another card, from half to a quarter more; measure yours"
    return constant("CUDA context", band, Basis.INFERRED, note)


def host_bytes(setup: Setup) -> Band:
    """Pinned memory of the host: inputs of one step. One figure was measured: 2128 MiB."""
    shape, step = setup.target, setup.step_tokens
    likely = F32 * step * (setup.cells_per_sequence + 2 * shape.embedding)
    return Band(0, likely, likely)


def _kernel_kind(setup: Setup) -> str:
    kinds = {_kind(name) for name in setup.types.both}
    return next(kind for kind in ("quantised", "turbo", "plain") if kind in kinds)


def _kind(name: str) -> str:
    if is_turbo(name):
        return "turbo"
    return "plain" if name in ("f16", "bf16", "f32") else "quantised"


def _copied(setup: Setup, names: tuple[str, ...]) -> tuple[int, int]:
    """f16 bytes per token of the widest full layer's keys and values of those types."""
    layers = [
        layer
        for layer in setup.target.layers
        if layer.kind in (LayerKind.FULL, LayerKind.BOTH) and not layer.extra
    ]
    key, value = setup.types.both
    keys = max((each.heads_kv * padded_head(each.key_length, key) for each in layers), default=0)
    values = max(
        (each.heads_kv * padded_head(each.value_length, value) for each in layers), default=0
    )
    return (
        F16 * keys if key in names else 0,
        F16 * values if value in names else 0,
    )
