"""What a header says about a model: role, dialect, sizes, and what it does not say."""

from __future__ import annotations

import gguf
import pytest
from support import gguf_files as files
from support.gguf_files import F16, F32, Q4_K, Q8_0

from jobs.gguf.facts import Clip, Dialect, Role, Split, Ssm
from jobs.gguf.file_names import Shard, quant_label, shard_of
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of
from jobs.gguf.tensor_types import (
    FILE_TYPES,
    TENSOR_TYPES,
    TensorType,
    file_type_name,
    stored_bytes,
    type_name,
)


def facts(file: files.File, *, depth=Depth.FULL, file_name=""):
    header = read_header(file.fetch, size_bytes=file.size_bytes, depth=depth)
    return facts_of(header, file_name=file_name)


def made(tensors=(), **keys):
    """Facts of a file with these keys; two underscores stand for a dot."""
    return facts(files.build({key.replace("__", "."): keys[key] for key in keys}, tensors))


def test_a_plain_target_from_its_first_bytes():
    """Everything that decides about fit and pairing is there before the vocabulary."""
    found = facts(files.qwen36(), depth=Depth.FACTS, file_name="Qwen3.6-27B-UD-Q3_K_XL.gguf")
    assert (found.role, found.dialect, found.architecture) == ("target", "plain", "qwen35")
    assert found.block_count == 64
    assert found.embedding_length == 5120
    assert (found.head_count, found.head_count_kv) == (24, 4)
    assert (found.key_length, found.value_length) == (256, 256)
    assert found.context_length == 262_144
    assert found.full_attention_interval == 4
    assert found.ssm == Ssm(4, 128, 16, 48, 6144)
    assert found.nextn_predict_layers is None
    assert found.vocabulary_size == 248_320
    assert found.tokenizer_pre == "qwen35"
    assert found.tensor_count == 851
    assert found.quantisation == "UD-Q3_K_XL"
    assert found.base_models[0].organization == "Qwen"
    assert found.tensor_types is None
    assert any("tensor count is a hint" in note for note in found.notes)


def test_mtp_heads_inside_a_target_show_in_the_first_bytes():
    """866 tensors, 65 blocks, one head: and the note that some loaders refuse it."""
    found = facts(files.qwen36(heads=1), depth=Depth.FACTS)
    assert (found.role, found.nextn_predict_layers) == ("target", 1)
    assert (found.block_count, found.tensor_count) == (65, 866)
    assert any("MTP heads" in note for note in found.notes)


def test_bytes_by_place_and_type():
    """The figures of the real file: 682.03 MiB of embeddings stay on the host."""
    found = facts(files.qwen36(heads=1))
    assert round(found.places.token_embd / 2**20, 2) == 682.03
    assert found.places.nextn > 4 * 5120
    assert found.places.total == found.data_bytes
    assert [share.type_name for share in found.tensor_types] == ["Q4_K", "Q6_K", "Q8_0", "F32"]
    assert sum(share.tensors for share in found.tensor_types) == 866
    assert (found.file_type, found.file_type_name) == (15, "Q4_K_M")


@pytest.mark.parametrize(
    ("file", "dialect", "key"),
    [
        (files.dflash(), Dialect.DFLASH_DRAFT, "dflash-draft.dflash.target_layer_ids"),
        (files.dflash("dflash"), Dialect.DFLASH, "dflash.target_layers"),
        (files.dflash("dflash", stale=True), Dialect.DFLASH_STALE, "dflash.target_layer_ids"),
        (files.dflash("dspark"), Dialect.DSPARK, "dspark.target_layers"),
    ],
)
def test_dialects_of_block_drafters(file, dialect, key):
    """The spelling of keys decides, and one small request holds the whole header."""
    found = facts(file, depth=Depth.FACTS)
    assert (found.role, found.dialect) == (Role.DRAFTER, dialect)
    assert found.dflash.target_layers == (1, 16, 31, 46, 61)
    assert found.dflash.target_layers_key == key
    assert (found.dflash.block_size, found.dflash.mask_token_id) == (16, 248_070)
    assert found.dflash.n_target_features == (25_600 if dialect == "dflash-draft" else None)
    assert found.vocabulary_size == 248_320
    assert found.places.token_embd == 0
    stale = [note for note in found.notes if "stale" in note]
    assert bool(stale) is (dialect is Dialect.DFLASH_STALE)


def test_double_prefixes_are_stale_and_selectors_are_dflash2():
    """An early conversion is loaded by nobody; the second generation has selector tensors."""
    stale = made(
        general__architecture="dflash", dflash__dflash__block_size=5, dflash__target_layers=[1]
    )
    assert stale.dialect is Dialect.DFLASH_STALE
    second = made(
        [("selector_hidden.weight", (32,), F32)],
        general__architecture="dflash",
        dflash__target_layers=[1],
    )
    assert second.dialect is Dialect.DFLASH2


@pytest.mark.parametrize(
    ("architecture", "dialect", "role"),
    [
        ("eagle3", Dialect.EAGLE3, Role.DRAFTER),
        ("gemma4-assistant", Dialect.GEMMA4_ASSISTANT, Role.MTP_HEAD),
        ("gemma4_assistant", Dialect.GEMMA4_ASSISTANT_OLD, Role.MTP_HEAD),
        ("clip", Dialect.CLIP, Role.MMPROJ),
        ("controlvector", Dialect.PLAIN, Role.OTHER),
        ("\x1b[31mllama", Dialect.PLAIN, Role.OTHER),
    ],
)
def test_architectures_that_are_no_target(architecture, dialect, role):
    """Each spelling is its own dialect: an engine that loads one need not load the other."""
    found = made(general__architecture=architecture)
    assert (found.dialect, found.role) == (dialect, role)


def test_a_projector_names_the_width_it_projects_to():
    """That width must be the target's."""
    found = facts(files.projector())
    assert found.role is Role.MMPROJ
    assert found.clip == Clip(("qwen3vl_merger",), 5120, True, None)


@pytest.mark.parametrize(
    "keys",
    [
        {"general__type": "imatrix", "general__architecture": "llama"},
        {"imatrix__chunk_count": 5},
    ],
)
def test_importance_matrices(keys):
    """They look like weights and must never be queued as such."""
    assert made(**keys).role is Role.IMATRIX


@pytest.mark.parametrize("keys", [{}, {"general__type": "adapter", "general__architecture": "a"}])
def test_what_is_no_model(keys):
    """Adapters and files without an architecture are nothing we could serve."""
    assert made(**keys).role is Role.OTHER


HEADS_ONLY = {
    "general__architecture": "qwen35",
    "qwen35__block_count": 65,
    "qwen35__nextn_predict_layers": 1,
}


def test_a_sidecar_of_heads_alone():
    """The target's architecture without the target's first block."""
    head = ("blk.64.nextn.enorm.weight", (32,), F32)
    first = ("blk.0.attn_norm.weight", (32,), F32)
    assert made([head], **HEADS_ONLY).role is Role.MTP_HEAD
    assert made([first, head], **HEADS_ONLY).role is Role.TARGET


def test_a_sidecar_is_known_by_its_count_where_tensors_were_not_read():
    """Fewer tensors than blocks cannot be a whole model, unless it is a part of a set."""
    keys = {key.replace("__", "."): value for key, value in HEADS_ONLY.items()}
    long = files.tokenizer(30_000, 10)
    keys |= {"qwen35.attention.head_count": 24, "qwen35.attention.key_length": 256}
    head = [("blk.64.nextn.enorm.weight", (32,), F32)]
    alone = facts(files.build(keys | long, head), depth=Depth.FACTS)
    assert alone.places is None
    assert alone.role is Role.MTP_HEAD
    part = facts(files.build(keys | {"split.count": 3} | long, head), depth=Depth.FACTS)
    assert part.role is Role.TARGET


def test_values_for_each_layer():
    """Heads and windows may differ from layer to layer; an array that was cut is not said."""
    found = made(
        general__architecture="a",
        a__block_count=3,
        a__attention__head_count=[8, 8, 16],
        a__attention__head_count_kv=4,
        a__attention__sliding_window=512,
        a__attention__sliding_window_pattern=[True, True, False],
        a__feed_forward_length=list(range(2000)),
        a__expert_count=128,
        a__expert_used_count=8,
    )
    assert found.head_count == (8, 8, 16)
    assert found.head_count_kv == 4
    assert found.sliding_window == 512
    assert found.sliding_window_pattern == (1, 1, 0)
    assert found.feed_forward_length is None
    assert (found.expert_count, found.expert_used_count) == (128, 8)


def test_a_value_of_the_wrong_kind_is_not_said():
    """Text where a number belongs, a truth where a number belongs, a negative count."""
    found = made(
        general__architecture="a",
        a__block_count="64",
        a__context_length=True,
        a__embedding_length=-5,
        a__attention__head_count=[0.5, 1.5],
        general__name=7,
        general__file_type="Q4",
    )
    assert found.block_count is None
    assert found.context_length is None
    assert found.embedding_length is None
    assert found.head_count is None
    assert found.name == ""
    assert found.file_type is None
    assert found.role is Role.OTHER


def test_the_vocabulary_is_counted_where_it_can_be():
    """The list of words, else the key, else the rows of the embeddings."""
    rows = [("token_embd.weight", (64, 300), Q8_0)]
    assert made(rows, general__architecture="a").vocabulary_size == 300
    assert made(rows, general__architecture="a", a__vocab_size=299).vocabulary_size == 299
    words = {"general__architecture": "a", "a__vocab_size": 299}
    assert made(rows, **words, tokenizer__ggml__tokens=["x"] * 70).vocabulary_size == 70
    assert made(general__architecture="a").vocabulary_size is None


def test_tensors_of_unknown_types_are_counted_and_not_measured():
    """Sizes are known only for known types; the sum says how many are missing."""
    found = made(
        [
            ("output.weight", (32, 2), F16),
            ("blk.0.a", (256,), Q4_K),
            ("blk.0.b", (256,), 42),
            ("blk.0.c", (256,), 200),
        ],
        general__architecture="a",
        a__block_count=1,
    )
    assert (found.places.output, found.places.blocks, found.places.unmeasured) == (128, 144, 2)
    assert {share.type_name: share.size_bytes for share in found.tensor_types} == {
        "Q4_K": 144,
        "F16": 128,
        "unknown type 42 (turbo2 or turbo3, depends on the fork)": None,
        "unknown type 200": None,
    }
    assert any("upstream does not know" in note for note in found.notes)


def test_parts_of_a_set():
    """The name counts from 1, the file from 0; a contradiction is told."""
    keys = {"general.architecture": "a", "split.no": 1, "split.count": 3, "split.tensors.count": 9}
    right = facts(files.build(keys), file_name="m-Q4_K_M-00002-of-00003.gguf")
    assert right.shard == Shard("m-Q4_K_M", 2, 3)
    assert right.split == Split(1, 3, 9)
    assert right.notes == ("one of 3 parts: sizes and tensors are those of this file alone",)
    wrong = facts(files.build(keys), file_name="m-00003-of-00003.gguf")
    assert any("itself says part 2 of 3" in note for note in wrong.notes)
    later = facts(files.build({"split.no": 1, "split.count": 2}))
    assert "the facts of the model are in the first part" in later.notes
    odd = facts(files.build({}), file_name="m-00000-of-00003.gguf")
    assert any("cannot be" in note for note in odd.notes)


@pytest.mark.parametrize(
    ("name", "shard"),
    [
        ("x-00001-of-00003.gguf", Shard("x", 1, 3)),
        ("best-of-breed.gguf", None),
        ("x-1-of-3.gguf", None),
        ("x-00001-of-00003.gguf.part", None),
        ("x-\u0660\u0660\u0660\u0660\u0661-of-00003.gguf", None),
        ("-00001-of-00003.gguf", None),
    ],
)
def test_names_of_parts(name, shard):
    """Only the exact pattern is one."""
    assert shard_of(name) == shard


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Qwen3.6-27B-UD-Q3_K_XL.gguf", "UD-Q3_K_XL"),
        ("Qwen3.6-27B-Q4_K_M-00001-of-00003.gguf", "Q4_K_M"),
        ("Qwen3.6-27B-DFlash-q8_0.gguf", "Q8_0"),
        ("Qwen3.6-27B-MTP-UD-IQ3_XXS.gguf", "UD-IQ3_XXS"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("gpt-oss-MXFP4_MOE.gguf", "MXFP4_MOE"),
        ("model.Q4_0_8_8.gguf", "Q4_0_8_8"),
        ("model-IQ4_XS.gguf", "IQ4_XS"),
        ("model-iq4_kss.gguf", "IQ4_KSS"),
        ("model-Q6_K.gguf", "Q6_K"),
        ("model-TQ3_1S.gguf", "TQ3_1S"),
        ("model-NVFP4.gguf", "NVFP4"),
        ("mmproj-BF16.gguf", "BF16"),
        ("f16-to-Q5_K_S.gguf", "Q5_K_S"),
        ("Qwen3-Coder.gguf", ""),
        ("IQ-test.gguf", ""),
        ("model.gguf", ""),
    ],
)
def test_labels_in_names(name, label):
    """The last one counts, in capitals."""
    assert quant_label(name) == label


def test_the_types_are_those_of_upstream():
    """Number, name and block size of every type the reference knows, and no more."""
    theirs = {
        int(kind): TensorType(kind.name, *gguf.GGML_QUANT_SIZES[kind])
        for kind in gguf.GGMLQuantizationType
    }
    assert theirs == TENSOR_TYPES


def test_the_file_types_are_those_of_upstream():
    """Likewise for the kinds of whole files."""
    theirs = {
        int(kind): kind.name.removeprefix("MOSTLY_").removeprefix("ALL_")
        for kind in gguf.LlamaFileType
        if kind is not gguf.LlamaFileType.GUESSED
    }
    assert theirs == FILE_TYPES


def test_numbers_of_forks_stay_numbers():
    """Forks gave 42 to 46 to different formats: no size, no name of our choosing."""
    for number in (42, 43, 44, 45, 46):
        assert type_name(number).startswith(f"unknown type {number} (")
        assert "depends on the fork" in type_name(number)
        assert stored_bytes(number, 256) is None
    assert type_name(4) == "unknown type 4"
    assert file_type_name(1024 + 15) == "Q4_K_M"
    assert file_type_name(33) == "unknown file type 33"
