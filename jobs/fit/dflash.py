"""Bytes that a DFlash drafter takes beside its weights: what it exchanges, and its compute.

Read in the sources of beellama ba1fdce59 and buun 1c4788192; the second was also measured, in ten
boots of one pair (docs/evidence/h200.md).
"""

from __future__ import annotations

from jobs.fit.amounts import NOTHING, Band, Basis, exactly
from jobs.fit.buffers import F16, F32
from jobs.fit.component import Component, constant
from jobs.fit.setup import Setup
from jobs.fit.shape import LayerKind, Recurrent, Shape

DEFAULT_CROSS_CONTEXT = 512
"""Tokens of the target's hidden states that a DFlash drafter sees (llama-context.cpp:81)."""

VERIFY_TOKENS = 25
DRAFT_SLOTS = 8
"""LLAMA_DFLASH_MAX_VERIFY_TOKENS and LLAMA_DFLASH_MAX_SLOTS (include/llama.h of ba1fdce59)."""

TREE_MARGIN = 4
"""Tokens more than a verified block that buffers for a tree are laid out for
(src/llama-context.cpp:2009 of buun 1c4788192)."""

DEFAULT_BLOCK = 16

Q8_0_BITS = 8.5


def fusion_bytes(drafter: Shape) -> int:
    """The matrix that joins the target's layers, as wide as they are, in q8_0."""
    keys = drafter.drafter
    features = keys.target_features if keys else None
    return round((features or 0) * drafter.embedding * Q8_0_BITS / 8)


def exchange(setup: Setup, drafter: Shape) -> Component:
    """Ring of hidden states with its staging, tapes to take a draft back, and what an engine adds.

    beellama projects the ring's keys beforehand. buun keeps the state after each token of a block,
    as for a tree, and lays all of it out with the first draft.
    """
    keys = drafter.drafter
    cross = setup.cross_context or DEFAULT_CROSS_CONTEXT
    taps = len(keys.target_layers or ()) if keys else 0
    ring = 2 * F32 * cross * setup.target.embedding * taps
    note = f"ring of {taps} layers of {cross:,} tokens"
    if setup.state.dflash_verifies_as_tree:
        block = _block(drafter)
        least, most = _tree(setup.target, block)
        filled = Band(ring + least, ring + least, ring + most)
        if setup.filled == 0:
            filled = NOTHING
        note = f"{note}, tape, states of {block + TREE_MARGIN} tokens; laid out by the first draft"
        return Component("drafter exchange", NOTHING, filled, Basis.FORMULA, note)
    size = ring + _projected(setup, drafter, cross, taps)
    note = f"{note}, projected keys, tape"
    if setup.state.dflash_buffers_read:
        return constant("drafter exchange", exactly(size), Basis.FORMULA, note)
    return constant(
        "drafter exchange",
        Band(0, size, 2 * size),
        Basis.INFERRED,
        f"{note} as in beellama 0.1; unread in {setup.state.title}",
    )


def _projected(setup: Setup, drafter: Shape, cross: int, taps: int) -> int:
    """Projected keys and values, captured states, and the tape with its convolution."""
    widths = sum(
        layer.heads_kv * (layer.key_length + layer.value_length) for layer in drafter.layers
    )
    hidden = VERIFY_TOKENS * setup.target.embedding * taps
    tape = 0
    if (state := setup.target.recurrent) is not None:
        tape = VERIFY_TOKENS * _recurrent_layers(setup.target) * (_taped(state) + state.channels)
    return F32 * (cross * widths + hidden + tape)


def _tree(target: Shape, block: int) -> tuple[int, int]:
    """Least and most bytes of tape, replayed states and the states after each token of a block."""
    state = target.recurrent
    if state is None:
        return 0, 0
    layers = _recurrent_layers(target)
    one = layers * state.state_size**2 * state.time_step_rank
    tape = F32 * VERIFY_TOKENS * layers * _taped(state)
    least = tape + F32 * one + F16 * one * (block + TREE_MARGIN)
    kept = block * layers * state.state_size * (state.group_count + state.time_step_rank)
    return least, least + F32 * kept


def _taped(state: Recurrent) -> int:
    """Keys, values, gate and beta of one token in one layer."""
    return state.state_size * (state.group_count + state.time_step_rank) + 2 * state.time_step_rank


def _recurrent_layers(target: Shape) -> int:
    return sum(layer.kind is LayerKind.RECURRENT for layer in target.layers)


def _block(drafter: Shape) -> int:
    keys = drafter.drafter
    return (keys.block_size if keys else None) or DEFAULT_BLOCK


def block_compute(setup: Setup, drafter: Shape) -> Component:
    """The drafter borrows the target's output, so its logits are as wide as the target's.

    Each token of the ring takes its features and one width more, as buun's log says for 128, 256
    and 512 of them.
    """
    keys = drafter.drafter
    block = _block(drafter)
    cross = setup.cross_context or DEFAULT_CROSS_CONTEXT
    width = setup.target.embedding
    features = (keys.target_features if keys else None) or width
    outputs = setup.target.vocabulary + width
    least = F32 * block * outputs
    step = DRAFT_SLOTS * block
    if not setup.state.dflash_buffers_read:
        step = max(step, setup.step_tokens)
    likely = F32 * step * outputs + F32 * cross * (features + width)
    most = likely + F32 * cross * (features + 2 * drafter.feed_forward)
    note = f"logits of {step:,} tokens and {cross:,} tokens of features"
    return constant("drafter compute", Band(least, likely, most), Basis.INFERRED, note)
