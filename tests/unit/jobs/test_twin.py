"""Random weights are finite in every type, and a twin's file is its model's but for a tag."""

from __future__ import annotations

import random
import struct

import gguf
import numpy as np
import pytest
from support import gguf_files

from jobs.errors import Permanent, UsageError
from jobs.exchange import TWIN_KEY
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.tensor_types import TENSOR_TYPES
from jobs.twin.blocks import WEIGHT, kind_of, pattern
from jobs.twin.plan import plan, weights

UNREADABLE = {"Q8_1", "Q8_K", "I8", "I16", "I32", "I64", "F64", "NVFP4", "Q1_0"}


def seeded(seed, count):
    return random.Random(seed).randbytes(count)


def few_blocks(type_id, kind=WEIGHT):
    """A pattern need not be long to be right."""
    return pattern(type_id, kind, seeded, count=257)


def header_of(file):
    return read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL)


@pytest.mark.parametrize("type_id", TENSOR_TYPES, ids=lambda n: TENSOR_TYPES[n].name)
def test_every_type_has_a_pattern_of_whole_blocks(type_id):
    """None that upstream knows is missing."""
    made = few_blocks(type_id)
    assert len(made) == 257 * TENSOR_TYPES[type_id].block_bytes


@pytest.mark.parametrize(
    "type_id",
    [n for n, known in TENSOR_TYPES.items() if known.name not in UNREADABLE],
    ids=lambda n: TENSOR_TYPES[n].name,
)
def test_decoded_weights_are_finite_and_of_the_size_of_trained_ones(type_id):
    """The `gguf` package decodes them; no block holds NaN, infinity or nothing but zeros."""
    made = np.frombuffer(few_blocks(type_id), np.uint8)
    kind = gguf.GGMLQuantizationType(type_id)
    raw = made.view({"F32": np.float32, "F16": np.float16}.get(kind.name, np.uint8))
    shape = (257, -1) if raw.dtype == np.uint8 else raw.shape
    values = gguf.quants.dequantize(raw.reshape(shape), kind)
    assert np.isfinite(values).all()
    assert 0.005 < float(values.std()) < 0.08
    assert abs(float(values.mean())) < 0.01


def test_the_same_seed_gives_the_same_weights():
    """So that an interrupted file can be continued."""
    assert few_blocks(12) == few_blocks(12)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("blk.0.attn_norm.weight", 0.97, 1.03),
        ("blk.3.ssm_a", -1.0, -0.02),
        ("blk.3.ssm_dt.bias", -4.0, 0.0),
        ("rope_freqs.weight", 1.0, 1.0),
        ("blk.0.attn_q.bias", -0.035, 0.035),
    ],
)
def test_values_fit_what_a_tensor_is_for(name, low, high):
    """A norm of zero would silence a layer, a positive decay let it explode."""
    made = few_blocks(0, kind_of(name))
    values = [value for (value,) in struct.iter_unpack("<f", made)]
    assert min(values) >= low - 1e-6
    assert max(values) <= high + 1e-6


def test_a_twin_has_its_models_header_and_a_tag():
    """Keys, vocabulary and tensor table are the same, byte for byte."""
    file = gguf_files.small()
    header = header_of(file)
    twin = plan(header, file.fetch, of="small.gguf")
    made = bytearray(twin.size_bytes)
    made[: len(twin.head)] = twin.head
    for at, piece in weights(twin, seeded):
        made[at : at + len(piece)] = piece
    read = read_header(
        lambda offset, length: bytes(made[offset : offset + length]),
        size_bytes=len(made),
        depth=Depth.FULL,
    )
    assert dict(read.keys) == {**header.keys, TWIN_KEY: "small.gguf"}
    assert read.tensors == header.tensors
    assert read.data_offset == len(twin.head)


def test_a_twin_of_a_twin_is_refused():
    """It would hide whose shape it is."""
    file = gguf_files.build({"general.architecture": "llama", TWIN_KEY: "x"})
    with pytest.raises(UsageError, match="twin already"):
        plan(header_of(file), file.fetch, of="x")


def test_a_part_of_a_set_is_refused():
    """Its header describes half a model."""
    file = gguf_files.build({"general.architecture": "llama", "split.count": 2})
    with pytest.raises(UsageError, match="one of 2 parts"):
        plan(header_of(file), file.fetch, of="x")


def test_a_fork_s_own_tensor_type_is_refused():
    """Nobody knows how it lies in the file."""
    file = gguf_files.build({"general.architecture": "llama"}, [("a", (32,), 43)])
    with pytest.raises(Permanent, match="depends on the fork"):
        plan(header_of(file), file.fetch, of="x")
    with pytest.raises(Permanent):
        pattern(43, WEIGHT, seeded)
