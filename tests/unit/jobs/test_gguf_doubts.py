"""Sizes of a header that cannot be meant are shown with a note, and never counted with."""

from __future__ import annotations

import struct

import pytest
from support import gguf_files as files
from support.gguf_files import F32, encoded, pair

from jobs.errors import Permanent
from jobs.fit.joining import shape_from
from jobs.gguf.doubts import MOST_NAMED, doubts
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of

UINT64 = 10
SOUND = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.context_length": 512,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
}


def header_of(keys, tensors=()):
    file = files.build(keys, tensors)
    return read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL)


def notes_of(**changes):
    """Notes of a sound header with some keys changed; two underscores stand for a dot."""
    own = {name.replace("__", "."): value for name, value in changes.items()}
    return facts_of(header_of(SOUND | own)).notes


def test_sound_sizes_have_no_note():
    """Neither those of a plain model nor heads that only some layers have."""
    assert not doubts(header_of(SOUND), "llama")
    some = SOUND | {"llama.attention.head_count_kv": [0, 2]}
    assert not doubts(header_of(some), "llama")


def test_a_model_without_attention_has_no_heads():
    """Converters of recurrent models write zero heads, which is no doubt."""
    keys = {
        "general.architecture": "mamba",
        "mamba.block_count": 2,
        "mamba.attention.head_count": 0,
        "mamba.ssm.state_size": 16,
    }
    assert not doubts(header_of(keys), "mamba")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("llama.block_count", -5, "-5"),
        ("llama.block_count", 4097, "4,097"),
        ("llama.embedding_length", 0, "0"),
        ("llama.context_length", 0, "0"),
        ("llama.attention.head_count", 0, "0"),
        ("llama.attention.head_count", [0, 0], "[0, 0]"),
        ("llama.attention.head_count_kv", [2, -2], "[2, -2]"),
        ("llama.attention.head_count_kv", -1, "-1"),
        ("llama.block_count", 2.5, "2.5"),
        ("llama.block_count", "two", "'two'"),
        ("split.count", -1, "-1"),
        ("split.count", 70_000, "70,000"),
        ("split.tensors.count", -3, "-3"),
    ],
)
def test_a_size_that_cannot_be_meant_is_noted(key, value, said):
    """With its key and its value as the file has it."""
    changed = {key.replace(".", "__"): value}
    assert f"{key} = {said} cannot be" in notes_of(**changed)


@pytest.mark.parametrize("key", ["context_length", "full_attention_interval"])
def test_nothing_is_counted_with_a_size_that_cannot_be_meant(key):
    """The model is refused as a whole, with the size that gives it away."""
    header = header_of(SOUND | {f"llama.{key}": 0})
    with pytest.raises(Permanent, match="cannot be right"):
        shape_from(header, facts_of(header))


def test_more_kv_heads_than_heads_are_noted():
    """They share heads, they do not add any."""
    found = notes_of(llama__attention__head_count=4, llama__attention__head_count_kv=8)
    assert "8 KV heads of 4 heads cannot be" in found


def test_more_layers_than_a_number_holds_are_shown_and_refused():
    """2^63 layers are no shape, and the facts say what stands there."""
    keys = [encoded("general.architecture", "llama")]
    keys.append(pair("llama.block_count", UINT64, struct.pack("<Q", 2**63)))
    data = files.start(0, len(keys)) + b"".join(keys) + bytes(64)
    header = read_header(lambda at, n: data[at : at + n], size_bytes=len(data), depth=Depth.FULL)
    facts = facts_of(header)
    assert facts.block_count == 2**63
    assert "llama.block_count = 9,223,372,036,854,775,808 cannot be" in facts.notes
    with pytest.raises(Permanent, match="cannot be right"):
        shape_from(header, facts)


def test_a_place_in_a_set_that_contradicts_its_count_is_noted():
    """Part 3 of a set of 3, counted from zero, is none of its parts."""
    notes = notes_of(split__no=3, split__count=3)
    assert "split.no = 3 contradicts split.count = 3: parts count from 0" in notes
    assert not [note for note in notes_of(split__no=2, split__count=3) if "cannot" in note]


def test_more_heads_of_prediction_than_layers_move_no_tensor():
    """The note names both; blocks stay blocks."""
    tensors = [("blk.0.attn_norm.weight", (64,), F32)]
    facts = facts_of(header_of(SOUND | {"llama.nextn_predict_layers": 9}, tensors))
    assert "9 MTP heads among 2 layers cannot be" in facts.notes
    assert facts.places is not None
    assert (facts.places.blocks, facts.places.nextn) == (256, 0)


def test_many_doubts_are_counted():
    """A header of nothing but nonsense gives a short list."""
    names = ("block_count", "embedding_length", "context_length", "vocab_size", "expert_count")
    more = ("attention.key_length", "attention.value_length", "attention.head_count")
    last = ("attention.head_count_kv", "expert_used_count", "nextn_predict_layers")
    sizes = dict.fromkeys([f"llama.{name}" for name in (*names, *more, *last)], -1)
    split = {"split.no": -1, "split.count": -1, "split.tensors.count": -1}
    found = doubts(header_of(SOUND | sizes | split), "llama")
    assert len(found) == MOST_NAMED + 1
    assert found[-1] == "sizes beyond these that cannot be: 2"
