"""Bytes of what a model keeps of the tokens before: keys, values, recurrent states."""

from __future__ import annotations

from jobs.fit.amounts import Band, Basis, exactly
from jobs.fit.component import Component, constant
from jobs.fit.formats import (
    CONTEXT_STEP,
    CacheTypes,
    is_boundary,
    padded_context,
    rotation_bytes,
    token_bytes,
)
from jobs.fit.setup import Setup, unsaid_of
from jobs.fit.shape import LayerKind, Shape

ATTENDING = (LayerKind.FULL, LayerKind.WINDOW, LayerKind.BOTH)


def window_cells(window: int, *, context: int, ubatch: int) -> int:
    """Tokens of a sliding layer (llama-kv-cache-iswa.cpp:50 of beellama ba1fdce59)."""
    padded = -(-(window + ubatch) // CONTEXT_STEP) * CONTEXT_STEP
    return min(padded_context(context), padded)


def cache_bytes(
    shape: Shape,
    types: CacheTypes,
    *,
    context: int,
    ubatch: int,
    extra: bool,
    sharers: int,
) -> int:
    """Bytes of keys and values."""
    total = 0.0
    for index, layer in enumerate(shape.layers):
        if layer.kind not in ATTENDING or (layer.extra and not extra):
            continue
        cells = padded_context(context)
        if layer.kind is LayerKind.WINDOW and shape.window:
            cells = window_cells(shape.window * sharers, context=context, ubatch=ubatch)
        boundary = is_boundary(index, len(shape.layers))
        total += cells * token_bytes(layer, types, boundary=boundary)
    return round(total)


def cache_band(
    shape: Shape, types: CacheTypes, *, context: int, ubatch: int, sharers: int = 1
) -> Band:
    """The cache's bytes, with doubt where the header leaves some.

    `sharers` sequences share a sliding layer, so that it holds a window for each.
    """

    def size(*, extra: bool) -> int:
        return cache_bytes(
            shape,
            types,
            context=context,
            ubatch=ubatch,
            extra=extra,
            sharers=sharers,
        )

    likely = size(extra=True)
    if shape.latent_attention:
        return Band(0, likely, likely)
    low = size(extra=False)
    if shape.window and not shape.window_pattern_known:
        low = min(low, _all_sliding(shape, types, context=context, ubatch=ubatch))
    return Band(low, likely, likely)


def _all_sliding(shape: Shape, types: CacheTypes, *, context: int, ubatch: int) -> int:
    cells = window_cells(shape.window or 0, context=context, ubatch=ubatch)
    attending = (layer for layer in shape.layers if layer.kind in ATTENDING and not layer.extra)
    return round(sum(cells * token_bytes(layer, types) for layer in attending))


def cache(setup: Setup) -> Component:
    """Keys and values of the target."""
    band = cache_band(
        setup.target,
        setup.types,
        context=setup.cells_per_sequence,
        ubatch=setup.step_tokens,
        sharers=setup.sequences if setup.unified else 1,
    ).times(1 if setup.unified else setup.sequences)
    band += exactly(rotation_bytes(setup.state, setup.types))
    names = "/".join(dict.fromkeys(setup.types.both))
    notes = [f"{names}, {setup.cells:,} tokens"]
    if setup.target.latent_attention:
        notes.append("latent attention is not modelled: this is the most it can be")
    elif setup.target.window and not setup.target.window_pattern_known:
        notes.append("which layers slide is not in the header: all full is the most")
    elif setup.target.nextn_layers:
        notes.append(f"the least leaves out {setup.target.nextn_layers} MTP layers")
    unsaid = unsaid_of(setup.target)
    if unsaid:
        notes.append(f"the header does not say {', '.join(unsaid)}: the least")
    sure = band.width == 0 and not unsaid
    basis = Basis.FORMULA if sure else Basis.INFERRED
    return constant("KV cache", band, basis, "; ".join(notes))


def recurrent(setup: Setup) -> Component | None:
    """States of recurrent layers; engines that can take a draft back keep two of each."""
    state = setup.target.recurrent
    kinds = (LayerKind.RECURRENT, LayerKind.BOTH)
    layers = sum(layer.kind in kinds for layer in setup.target.layers)
    if state is None or not layers:
        return None
    one = layers * state.state_bytes * setup.sequences
    if not setup.speculating:
        return constant("recurrent state", exactly(one), Basis.FORMULA, f"{layers} layers, f32")
    copies = setup.state.recurrent_copies_speculating
    if copies is None:
        note = f"{layers} layers; whether {setup.state.title} keeps a second copy is unread"
        return constant("recurrent state", Band(one, one, 2 * one), Basis.INFERRED, note)
    note = f"{layers} layers, {copies} copies while speculating"
    return constant("recurrent state", exactly(copies * one), Basis.FORMULA, note)
