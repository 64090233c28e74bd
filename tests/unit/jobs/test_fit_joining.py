"""From headers as the reader gives them to shapes, sound ones and strange ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import gguf_files as files
from support.shapes import LLAMA_8B, MIB, dflash_drafter, mmproj, qwen36

from jobs.errors import Permanent
from jobs.fit.joining import shape_from
from jobs.fit.shape import LayerKind, Shape, TensorBytes
from jobs.fit.shape_reading import shape_of
from jobs.gguf.header import ArrayValue, ValueType
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of

BYTES = TensorBytes(1000)


def read(file: files.File, *, full: bool = True) -> Shape:
    depth = Depth.FULL if full else Depth.FACTS
    header = read_header(file.fetch, size_bytes=file.size_bytes, depth=depth, check=lambda: None)
    return shape_from(header, facts_of(header))


def test_a_written_header_gives_the_shape_of_its_keys() -> None:
    """The same layers as from plain keys; the embedding stays on the host."""
    found = read(files.qwen36())
    assert found.layers == qwen36().layers
    assert found.tensors.token_embedding == 144 * 248_320 * 5120 // 256
    assert found.tensors.has_output
    assert found.vocabulary == 248_320
    assert found.tensor_count == 851
    assert sum(layer.kind is LayerKind.FULL for layer in found.layers) == 16


def test_the_first_64_kib_are_enough_for_pairing() -> None:
    """The file's size stands for its tensors then, and says so."""
    found = read(files.qwen36(heads=1), full=False)
    assert not found.tensors.whole
    assert found.nextn_layers == 1
    assert found.layers[-1].extra
    assert found.layers[-1].kind is LayerKind.FULL
    assert found.tensor_count == 866


@pytest.mark.parametrize("form", ["dflash-draft", "dflash"])
def test_a_drafter_says_what_it_reads(form: str) -> None:
    """In both forms; without an embedding all of it goes to the card."""
    found = read(files.dflash(form))
    assert found.drafter is not None
    assert found.drafter.target_layers == (1, 16, 31, 46, 61)
    assert found.drafter.block_size == 16
    assert not found.drafter.stale
    assert found.tensors.on_host == 0
    assert dflash_drafter(form).layers == found.layers


def test_a_projector_says_how_wide_it_is() -> None:
    """And has no layers that keep tokens."""
    found = read(files.projector())
    assert found.projector is not None
    assert found.projector.projection == 5120
    assert mmproj().projector.kind == "qwen3vl_merger"
    assert found.layers == ()


def test_parts_of_a_set_are_summed() -> None:
    """Keys come from the first, bytes from all."""
    file = files.qwen36()
    header = read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL)
    more = files.build({"split.no": 1}, [("blk.9.x.weight", (256, 1024), files.F32)])
    part = facts_of(read_header(more.fetch, size_bytes=more.size_bytes, depth=Depth.FULL))
    whole = shape_from(header, facts_of(header), parts=[part])
    assert whole.tensors.total - read(file).tensors.total == MIB
    assert "a set of 2 files" in whole.notes


def test_a_cut_list_is_filled_with_its_largest_and_noted() -> None:
    """Layers are then counted as the widest there is."""
    keys = {**LLAMA_8B, "llama.attention.head_count_kv": [8] * 32}
    file = files.build(keys, [("token_embd.weight", (64, 80), files.Q8_0)])
    header = read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL)
    name = "llama.attention.head_count_kv"
    cut = {**header.keys, name: ArrayValue(ValueType.INT32, 32, (4, 8, 2))}
    cut_header = header.__class__(**{**vars(header), "keys": cut})
    found = shape_from(cut_header, facts_of(cut_header))
    assert [layer.heads_kv for layer in found.layers] == [4, 8, 2] + [8] * 29
    assert any(name in note for note in found.notes)


def test_heads_of_a_layer_can_be_none() -> None:
    """A layer without key heads keeps nothing, or a state in a model with states."""
    keys = {
        "general.architecture": "x",
        "x.block_count": 3,
        "x.embedding_length": 64,
        "x.attention.head_count": 4,
        "x.attention.head_count_kv": [2, 0, 2],
    }
    kinds = [layer.kind for layer in shape_of(keys, tensors=BYTES).layers]
    assert kinds == [LayerKind.FULL, LayerKind.NOTHING, LayerKind.FULL]
    keys |= {"x.ssm.inner_size": 128, "x.ssm.state_size": 16}
    kinds = [layer.kind for layer in shape_of(keys, tensors=BYTES).layers]
    assert kinds == [LayerKind.FULL, LayerKind.RECURRENT, LayerKind.FULL]
    keys["x.attention.head_count_kv"] = 2
    kinds = {layer.kind for layer in shape_of(keys, tensors=BYTES).layers}
    assert kinds == {LayerKind.BOTH}


def test_a_window_can_have_a_pattern_of_its_own() -> None:
    """A list, a period, or neither: then all may slide or none."""
    keys = {**LLAMA_8B, "llama.attention.sliding_window": 512}
    unknown = shape_of(keys, tensors=BYTES)
    assert not unknown.window_pattern_known
    keys["llama.attention.sliding_window_pattern"] = [True, False] * 16
    listed = shape_of(keys, tensors=BYTES)
    assert listed.window_pattern_known
    assert [layer.kind for layer in listed.layers[:2]] == [LayerKind.WINDOW, LayerKind.FULL]
    keys["llama.attention.sliding_window_pattern"] = 4
    period = shape_of(keys, tensors=BYTES)
    assert [layer.kind for layer in period.layers[2:4]] == [LayerKind.WINDOW, LayerKind.FULL]


VALUES = st.one_of(
    st.integers(-(2**40), 2**40),
    st.booleans(),
    st.floats(),
    st.sampled_from(["", "gpt2", "\x00"]),
    st.lists(st.integers(-4, 2**33), max_size=70),
    st.none(),
)
NAMES = [name.partition(".")[2] for name in LLAMA_8B if name.startswith("llama.")]
MORE = ["full_attention_interval", "ssm.inner_size", "attention.sliding_window"]
STRANGE = st.dictionaries(st.sampled_from(NAMES + MORE), VALUES)


@given(STRANGE)
def test_strange_values_give_a_shape_or_one_error(changes: dict[str, object]) -> None:
    """Never another exception, whatever stands in a key."""
    keys = {**LLAMA_8B, **{f"llama.{name}": value for name, value in changes.items()}}
    try:
        found = shape_of(keys, tensors=BYTES)
    except Permanent:
        return
    assert all(layer.heads_kv >= 0 for layer in found.layers)


def test_tensors_of_an_unknown_type_leave_the_size_of_the_file() -> None:
    """Which is the most they can be; without it nothing is known."""
    keys = {**LLAMA_8B, "general.name": "x"}
    file = files.build(keys, [("token_embd.weight", (64, 80), 43)])
    header = read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL)
    facts = facts_of(header)
    assert not shape_from(header, facts).tensors.whole
    unsaid = replace(facts, data_bytes=None, size_bytes=None)
    with pytest.raises(Permanent, match="sizes of the tensors"):
        shape_from(header, unsaid)


@pytest.mark.parametrize("architecture", [None, "", 7])
def test_a_header_without_an_architecture_is_refused(architecture: object) -> None:
    """Nothing else can be read without it."""
    with pytest.raises(Permanent, match="names no architecture"):
        shape_of({"general.architecture": architecture}, tensors=BYTES)
