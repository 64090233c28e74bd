"""Random weights of every storage type, finite by construction; knows no file and no model."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jobs.errors import Permanent
from jobs.gguf.tensor_types import TENSOR_TYPES, type_name

SPREAD = 0.02
"""Standard deviation of the weights, about that of trained ones."""

BLOCKS = 65_521
"""Blocks of a pattern: a prime, so that a tiled pattern begins each row of a tensor elsewhere."""

RandomBytes = Callable[[str, int], bytes]
"""`random_bytes(seed, count)`: the same bytes for the same seed."""

Stamp = tuple[int, bytes]


def _half(value: float) -> bytes:
    return struct.pack("<e", value)


def _middle(step: float, levels: int) -> bytes:
    """A step and the minimum that centres so many levels of it."""
    return _half(step) + _half(-step * (levels - 1) / 2)


def _k_super(levels: int, deviation: float) -> bytes:
    """Step, minimum and packed scales of Q4_K and Q5_K: each of the eight scales is 32."""
    step = SPREAD / deviation / 32
    return _half(step) + _half(step * (levels - 1) / 2) + bytes([160] * 8 + [0] * 4)


def _spread_half(value: float) -> bytes:
    """A half in the high nibbles of four words, as IQ1_M keeps it; each small scale is 3."""
    bits = int.from_bytes(_half(value), "little")
    return b"".join(
        struct.pack("<H", (bits >> shift & 0xF) << 12 | 0x6DB) for shift in (0, 4, 8, 12)
    )


STAMPS: dict[str, tuple[Stamp, ...]] = {
    "Q4_0": ((0, _half(SPREAD / 4.61)),),
    "Q4_1": ((0, _middle(SPREAD / 4.61, 16)),),
    "Q5_0": ((0, _half(SPREAD / 9.23)),),
    "Q5_1": ((0, _middle(SPREAD / 9.23, 32)),),
    "Q8_0": ((0, _half(SPREAD / 73.9)),),
    "Q8_1": ((0, _half(SPREAD / 73.9) + _half(0.0)),),
    "Q2_K": (
        (0, bytes([0x88] * 16)),
        (80, _half(SPREAD / 8 / 1.118) + _half(SPREAD / 8 / 1.118 * 1.5)),
    ),
    "Q3_K": ((96, bytes([0x44] * 8 + [0xAA] * 4)), (108, _half(SPREAD / 4 / 2.29))),
    "Q4_K": ((0, _k_super(16, 4.61)),),
    "Q5_K": ((0, _k_super(32, 9.23)),),
    "Q6_K": ((192, bytes([4] * 16) + _half(SPREAD / 4 / 18.47)),),
    "Q8_K": ((0, struct.pack("<f", SPREAD / 73.9)),),
    "IQ2_XXS": ((0, _half(SPREAD / 44)),),
    "IQ2_XS": ((0, _half(SPREAD / 44)),),
    "IQ2_S": ((0, _half(SPREAD / 44)),),
    "IQ3_XXS": ((0, _half(SPREAD / 120)),),
    "IQ3_S": ((0, _half(SPREAD / 112)),),
    "IQ1_S": ((0, _half(SPREAD / 6.4)),),
    "IQ1_M": ((48, _spread_half(SPREAD / 6.4)),),
    "IQ4_NL": ((0, _half(SPREAD / 70)),),
    "IQ4_XS": ((0, _half(SPREAD / 4 / 70) + bytes([0xAA] * 2 + [0x44] * 4)),),
    "TQ1_0": ((52, _half(SPREAD / 0.82)),),
    "TQ2_0": ((64, _half(SPREAD / 1.22)),),
    "MXFP4": ((0, bytes([120])),),
    "NVFP4": ((0, bytes([4] * 4)),),
    "Q1_0": ((0, _half(SPREAD)),),
}
"""Where each block keeps its scales, and what stands there; all other bits of a block are values.

The offsets are those of upstream's block structs (ggml-common.h)."""

FLOATS = {"F32": "f", "F16": "e", "BF16": "f", "F64": "d"}
WHOLE = frozenset({"I8", "I16", "I32", "I64"})


@dataclass(frozen=True)
class Kind:
    """What sort of tensor it is, as far as its values matter: even between `low` and `high`."""

    name: str
    low: float
    high: float


WEIGHT = Kind("weight", -SPREAD * 1.732, SPREAD * 1.732)
KINDS = (
    ("norm", Kind("norm", 0.97, 1.03)),
    ("ssm_a", Kind("decay", -1.0, -0.02)),
    ("ssm_dt.bias", Kind("step", -4.0, 0.0)),
    ("ssm_conv1d", Kind("filter", -0.7, 0.7)),
    ("rope_f", Kind("factor", 1.0, 1.0)),
    ("layer_out_scale", Kind("factor", 1.0, 1.0)),
)
"""Part of a tensor's name and the values that keep a model of that kind calm; first match wins."""


def kind_of(tensor_name: str) -> Kind:
    """By the words of its name; whatever is not known gets small weights around zero."""
    return next((kind for part, kind in KINDS if part in tensor_name), WEIGHT)


def pattern(type_id: int, kind: Kind, random_bytes: RandomBytes, *, count: int = BLOCKS) -> bytes:
    """A run of random blocks to tile tensors with; raises Permanent for a type nobody can write."""
    known = TENSOR_TYPES.get(type_id)
    if known is None:
        raise Permanent(
            f"{type_name(type_id)} cannot be written",
            advice="A fork's own tensor types are not known well enough for a twin.",
        )
    if known.name in WHOLE:
        return bytes(count * known.block_bytes)
    if known.name in FLOATS:
        seed = f"{known.name}:{kind.name}"
        return b"".join(
            _floats(FLOATS[known.name], known.name, kind, random_bytes(seed, count * 2))
        )
    blocks = bytearray(random_bytes(known.name, count * known.block_bytes))
    for offset, content in STAMPS[known.name]:
        for place, value in enumerate(content, start=offset):
            blocks[place :: known.block_bytes] = bytes([value]) * count
    return bytes(blocks)


def _floats(code: str, name: str, kind: Kind, draws: bytes) -> Iterator[bytes]:
    span = (kind.high - kind.low) / 65_535
    values = [kind.low + span * draw for (draw,) in struct.iter_unpack("<H", draws)]
    packed = struct.pack(f"<{len(values)}{code}", *values)
    if name != "BF16":
        yield packed
        return
    for at in range(0, len(packed), 4):
        yield packed[at + 2 : at + 4]
