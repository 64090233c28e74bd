"""How large a cached value is in one engine, and which type it really takes; never guessed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jobs.errors import UsageError, did_you_mean
from jobs.fit.shape import Layer
from jobs.known_engines import STATES, EngineState
from jobs.terminal import printable

_TYPE = re.compile(r"\w{1,32}", re.ASCII)

TURBO_HEAD = 128
"""turbo types lay a head out in blocks of 128 (src/llama-kv-cache.cpp of all three forks)."""

TURBO_ROTATION_BYTES = 2 * 128 * 128 * 4
"""Two f32 rotation matrices beside a turbo cache (llama-kv-cache.cpp:411 of beellama ba1fdce59)."""

BOUNDARY_LAYERS = 2
BOUNDARY_FROM_LAYERS = 8
"""turboquant keeps V of the first and last two layers at q8_0, in models of eight or more
(llama-kv-cache.cpp:288 of turboquant 69d8e4be4)."""

CONTEXT_STEP = 256
"""llama.cpp rounds a context up to this many tokens (src/llama-context.cpp:196)."""

COPIED_AT_LOAD = ("turbo2", "turbo3", "turbo3_tcq", "turbo2_tcq")
"""Types of which the warm-up makes an f16 copy of one layer (docs/models.md, measured)."""

COPIED_AS_FILLED = ("q8_0", "q4_0", "bf16")
"""Types of which an f16 copy of one layer grows with the filled tokens (docs/models.md)."""

SLOW_COMPUTE = ("q8_0", "q4_0")
"""Types whose attention takes a fourth buffer of the heads' width (docs/models.md, fitted)."""


def is_turbo(name: str) -> bool:
    """Whether a type belongs to the turbo family."""
    return name.startswith("turbo")


@dataclass(frozen=True)
class CacheTypes:
    """The types a cache really has, after the engine had its way, and what it changed."""

    key: str
    value: str
    key_bits: float
    value_bits: float
    boundary_value_bits: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def both(self) -> tuple[str, str]:
        """Key and value type."""
        return self.key, self.value


def asked_types(text: str) -> tuple[str, str]:
    """Type of K and of V in `q8_0`, for both, or `q8_0/turbo3`; raises UsageError."""
    key, stroke, value = text.partition("/")
    if not _TYPE.fullmatch(key) or (stroke and not _TYPE.fullmatch(value)):
        raise UsageError(
            f"kv {printable(text)[:80]!r} is no cache type",
            advice="Write q8_0, or q8_0/turbo3 for K/V.",
        )
    return key, value or key


def cache_types(
    state: EngineState, *, key: str, value: str, heads: int, heads_kv: int
) -> CacheTypes:
    """The effective types of a cache. Raises UsageError for a type this engine's state lacks.

    `heads` and `heads_kv` are those of the first layer, which is the one that turboquant asks.
    """
    notes: list[str] = []
    value_bits = bits_of(state, value)
    bits_of(state, key)
    ratio = heads // heads_kv if heads_kv else 1
    threshold = state.raises_turbo_key_from_ratio
    if threshold and is_turbo(key) and key == value and ratio >= threshold:
        notes.append(
            f"{state.engine} raises K from {key} to q8_0: {heads} heads over {heads_kv} are "
            f"{ratio} to 1, and it does so from {threshold} to 1"
        )
        key = "q8_0"
    boundary = None
    if state.boundary_value_type == value:
        boundary = bits_of(state, "q8_0")
        notes.append(f"{state.engine} keeps V of the first and last two layers at q8_0")
    return CacheTypes(
        key=key,
        value=value,
        key_bits=bits_of(state, key),
        value_bits=value_bits,
        boundary_value_bits=boundary,
        notes=tuple(notes),
    )


def bits_of(state: EngineState, name: str) -> float:
    """Bits per value of a cache type in this state of the engine; raises UsageError if unread."""
    bits = state.cache_bits.get(name)
    if bits is not None:
        return bits
    sizes = [
        f"{bits:g} bits in {other.title}"
        for other in STATES
        if (bits := other.cache_bits.get(name)) is not None
    ]
    if sizes:
        raise UsageError(
            f"the size of cache type {name!r} is not known for {state.title}",
            advice="It differs between forks: " + ", ".join(sizes) + ". Name one with --engine.",
        )
    known = {each for other in STATES for each in other.cache_bits}
    raise UsageError(
        f"nobody read a cache type {name[:40]!r} in any engine", advice=did_you_mean(name, known)
    )


def padded_context(tokens: int) -> int:
    """The context that is really laid out."""
    return -(-tokens // CONTEXT_STEP) * CONTEXT_STEP


def token_bytes(layer: Layer, types: CacheTypes, *, boundary: bool = False) -> float:
    """Bytes that one token takes in one layer's cache."""
    key = padded_head(layer.key_length, types.key) * types.key_bits
    bits, name = types.value_bits, types.value
    if boundary and types.boundary_value_bits is not None:
        bits, name = types.boundary_value_bits, "q8_0"
    return layer.heads_kv * (key + padded_head(layer.value_length, name) * bits) / 8


def is_boundary(index: int, layers: int) -> bool:
    """Whether a layer is among the first or last that turboquant's V keeps finer."""
    inside = BOUNDARY_LAYERS <= index < layers - BOUNDARY_LAYERS
    return layers >= BOUNDARY_FROM_LAYERS and not inside


def rotation_bytes(state: EngineState, types: CacheTypes) -> int:
    """Matrices that lie beside a turbo cache, where the engine lays them there."""
    turbo = any(is_turbo(name) for name in types.both)
    return TURBO_ROTATION_BYTES if turbo and state.lays_turbo_rotations else 0


def padded_head(length: int, name: str) -> int:
    """The length of a head as a cache of this type lays it out."""
    return -(-length // TURBO_HEAD) * TURBO_HEAD if is_turbo(name) else length
