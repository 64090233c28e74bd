"""What a header leaves open: each doubt is in a band and in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.shapes import (
    LLAMA_8B,
    dflash_drafter,
    gemma3_270m,
    llama_8b,
    mmproj,
    qwen36,
)

from jobs.errors import UsageError
from jobs.fit.amounts import GIB, MIB, Band, Basis, mib, parse_amount
from jobs.fit.component import Component
from jobs.fit.estimate import Fit, estimate, judge, largest_context
from jobs.fit.formats import asked_types
from jobs.fit.residuals import Residual, compare, corrected, error, learn
from jobs.fit.setup import Card, Setup
from jobs.fit.shape import Shape, TensorBytes
from jobs.fit.shape_reading import shape_of
from jobs.fit_answers import answer
from jobs.known_engines import state_named
from jobs.model import BootMemory, MemoryLines

CARD = Card(total_bytes=24 * GIB)
BEELLAMA = state_named("beellama@0.1")


def lines(setup: Setup) -> dict[str, Component]:
    return {line.name: line for line in estimate(setup).components}


def plain(shape: Shape, **wish) -> Setup:
    return Setup(**{"target": shape, "card": CARD, "context": 8192, **wish})


def test_latent_attention_can_take_anything_up_to_the_full_cache() -> None:
    """deepseek2 keeps a compressed row of which we model nothing."""
    keys = {**LLAMA_8B, "llama.attention.kv_lora_rank": 512}
    line = lines(plain(shape_of(keys, tensors=TensorBytes(1000))))["KV cache"]
    assert line.loaded.low == 0
    assert "not modelled" in line.note


def test_an_unknown_pattern_of_windows_is_between_all_and_none() -> None:
    """The most is every layer full."""
    keys = {**LLAMA_8B, "llama.attention.sliding_window": 512}
    line = lines(plain(shape_of(keys, tensors=TensorBytes(1000))))["KV cache"]
    assert line.loaded == Band(1024 * 128 * 1024, 8192 * 128 * 1024, 8192 * 128 * 1024)
    assert "which layers slide is not in the header" in line.note


def test_mtp_layers_may_or_may_not_have_a_cache() -> None:
    """One layer of 17 for Qwen3.6 with a head."""
    line = lines(plain(qwen36(block_count=65, nextn_predict_layers=1)))["KV cache"]
    assert (line.loaded.low, line.loaded.high) == (16 * 32 * MIB, 17 * 32 * MIB)


def test_slots_that_share_a_cache_share_its_windows_too() -> None:
    """Four windows and a micro-batch; on their own each slot has a window and a micro-batch."""
    shared = plain(gemma3_270m(), sequences=4)
    assert lines(shared)["KV cache"].loaded.likely == (3 * 8192 + 15 * 2560) * 1024
    apart = replace(shared, unified=False)
    assert lines(apart)["KV cache"].loaded.likely == 4 * (3 * 2048 + 15 * 1024) * 1024


def test_only_a_file_size_is_at_most_the_weights() -> None:
    """At the least they are what a header and an embedding of f32 leave of it."""
    shape = replace(llama_8b(), tensors=TensorBytes(5000, whole=False))
    line = lines(plain(shape))["weights"]
    assert line.loaded == Band(0, 5000, 5000)
    assert "the most" in line.note
    shape = replace(llama_8b(), tensors=TensorBytes(75 * 10**9, whole=False))
    beside = 4 * shape.vocabulary * shape.embedding + 64 * 2**20
    assert lines(plain(shape))["weights"].loaded.low == 75 * 10**9 - beside


def test_more_context_than_was_trained_is_noted() -> None:
    """It is laid out all the same."""
    notes = estimate(plain(llama_8b(), context=262_144)).notes
    assert "the model was trained for 131,072 tokens, 262,144 are asked" in notes


def test_a_vocabulary_that_is_not_said_is_noted() -> None:
    """Logits are then left out."""
    notes = estimate(plain(replace(llama_8b(), vocabulary=0))).notes
    assert any("logits are left out" in note for note in notes)


def test_a_plain_drafter_has_a_context_and_logits_of_its_own() -> None:
    """A small model beside a large one."""
    found = lines(plain(llama_8b(), drafter=llama_8b(), state=state_named("upstream@dflash")))
    assert found["drafter cache"].loaded.likely == found["KV cache"].loaded.likely
    assert found["drafter compute"].loaded.likely == found["compute"].loaded.likely
    assert "drafter exchange" not in found


def test_a_drafter_in_an_unread_engine_has_any_context() -> None:
    """From 256 tokens to the target's."""
    found = lines(plain(qwen36(), drafter=dflash_drafter(), state=state_named("buun@2026-08")))
    assert found["drafter cache"].loaded.low == 5 * MIB
    assert found["drafter cache"].loaded.high == 8192 * 20_480
    assert "unread" in found["drafter cache"].note


def test_pinned_memory_is_told_apart() -> None:
    """The one figure that was measured: 2,128 MiB at 262,144 tokens and 2,048 in a step."""
    found = estimate(plain(qwen36(), context=262_144, ubatch=2048))
    assert found.host.likely == 2128 * MIB


def test_nothing_filled_is_nothing_grown() -> None:
    """A server nobody asked."""
    line = lines(plain(llama_8b(), filled_tokens=0))["growth"]
    assert line.filled.high == 0


def test_a_copy_grows_with_the_filled_tokens() -> None:
    """q8_0: 4 KiB a token, +512 MiB at 131,072; bf16 as well, f16 not."""
    for name, grown in (("q8_0", 512), ("bf16", 512), ("f16", 0)):
        wish = plain(qwen36(), context=262_144, ubatch=256, filled_tokens=131_072)
        line = lines(replace(wish, key=name, value=name))["growth"]
        assert line.filled.likely == (grown + 18) * MIB


def test_a_band_must_be_ordered() -> None:
    """Least, likely, most; never below nothing."""
    for wrong in ((2, 1, 3), (1, 3, 2), (-1, 0, 1)):
        with pytest.raises(ValueError, match="not a band"):
            Band(*wrong)


def test_an_amount_beyond_any_card_is_refused() -> None:
    """A petabyte is a slip of the unit."""
    with pytest.raises(UsageError, match="more than any card has"):
        parse_amount("2000TiB", what="the card")
    assert mib(1234 * MIB) == "1,234"


def test_a_drafter_and_a_projector_teach_as_well() -> None:
    """Their lines are compared where the log has them; a line of nothing teaches nothing."""
    wish = plain(qwen36(), drafter=dflash_drafter("dflash"), projector=mmproj(), state=BEELLAMA)
    found = estimate(wish)
    seen = BootMemory(
        target=MemoryLines(),
        drafter=MemoryLines(weights=1669 * MIB, cache=5 * MIB, compute=121 * MIB),
        projector=248 * MIB,
    )
    residuals = compare(found, seen)
    names = {each.component for each in residuals}
    assert names == {
        "drafter weights",
        "drafter cache",
        "drafter compute",
        "projector buffers",
    }
    after = {line.name: line for line in corrected(found, learn(residuals)).components}
    assert after["drafter compute"].loaded.likely == pytest.approx(121 * MIB, abs=2)
    assert after["projector buffers"].loaded.likely == pytest.approx(248 * MIB, abs=2)
    assert after["weights"] == next(each for each in found.components if each.name == "weights")


def test_boots_that_measured_nothing_have_no_error() -> None:
    """And a line that only one boot has is judged uncorrected."""
    empty = Residual("e", "a", "compute", estimated=0, measured=0)
    assert error([[empty], [empty]]) is None
    one = Residual("e", "a", "compute", estimated=10, measured=20)
    found = error([[one], [empty]])
    assert found is not None
    assert found.before == 0.5


def test_the_likely_largest_context_is_never_below_the_sure_one() -> None:
    """Nor beyond what any engine takes, whatever length a header claims."""
    wish = plain(qwen36(), context=4096)
    sure, likely = largest_context(wish), largest_context(wish, surely=False)
    assert sure is not None
    assert likely is not None
    assert sure < likely
    endless = plain(qwen36(context_length=2**31), context=4096)
    assert largest_context(endless) == sure
    room = Card(total_bytes=2**49)
    assert largest_context(replace(endless, card=room)) == 2**24


def test_a_measured_card_is_one_figure_in_the_sentence() -> None:
    """No band where there is no doubt."""
    card = Card(total_bytes=24 * GIB, reserve_bytes=0)
    assert "of 24.00 GiB usable" in judge(estimate(plain(llama_8b(), card=card))).sentence


def test_a_residual_of_nothing_changes_nothing() -> None:
    """A line that was estimated at nothing cannot be a share off."""
    assert Residual("e", "a", "compute", estimated=0, measured=7).off == 1.0


def test_sliding_layers_can_have_heads_of_another_length() -> None:
    """gemma 4 does: its sliding layers are narrower."""
    keys = {
        **LLAMA_8B,
        "llama.attention.sliding_window": 512,
        "llama.attention.sliding_window_pattern": 2,
        "llama.attention.key_length": 512,
        "llama.attention.key_length_swa": 256,
    }
    layers = shape_of(keys, tensors=TensorBytes(1)).layers
    assert [layer.key_length for layer in layers[:2]] == [256, 512]


def test_a_purely_recurrent_model_keeps_states_only() -> None:
    """mamba has no cache at all."""
    keys = {
        "general.architecture": "mamba",
        "mamba.block_count": 4,
        "mamba.embedding_length": 64,
        "mamba.ssm.inner_size": 128,
        "mamba.ssm.state_size": 16,
        "mamba.ssm.conv_kernel": 4,
    }
    found = lines(plain(shape_of(keys, tensors=TensorBytes(1))))
    assert found["KV cache"].loaded.high == 0
    assert found["recurrent state"].loaded.likely == 4 * 4 * (3 * 128 + 16 * 128)


def test_turboquant_asks_the_first_layer_for_its_ratio() -> None:
    """A list that begins with a layer without key heads keeps turbo3 for K."""
    state = state_named("turboquant@2026-05")
    heads = [0 if (i + 1) % 4 else 4 for i in range(64)]
    wish = plain(qwen36(), state=state, key="turbo3", value="turbo3")
    assert wish.types.key == "q8_0"
    listed = replace(wish, target=qwen36(**{"attention.head_count_kv": heads}))
    assert listed.types.key == "turbo3"


def test_the_copy_of_a_padded_head_is_padded() -> None:
    """80 values lie in 128."""
    keys = {**LLAMA_8B, "llama.attention.key_length": 80, "llama.attention.value_length": 80}
    wish = plain(shape_of(keys, tensors=TensorBytes(1)), state=BEELLAMA, key="turbo3")
    copy = lines(replace(wish, value="turbo3"))["work copy"]
    assert copy.loaded.likely == 8192 * 2 * 2 * 8 * 128


LISTED = "attention.head_count_kv of every layer"


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"attention.head_count": None, "attention.head_count_kv": None}, "attention.head_count"),
        ({"attention.head_count": 0, "attention.head_count_kv": 0}, "attention.head_count"),
        ({"attention.head_count_kv": 0}, "attention.head_count_kv"),
        ({"attention.head_count_kv": [8] * 3}, LISTED),
        ({"embedding_length": 0, "attention.key_length": 128}, "embedding_length"),
        ({"embedding_length": None, "attention.value_length": 128}, "attention.key_length"),
    ],
)
def test_nothing_fits_surely_without_a_fact_that_memory_needs(
    changes: dict[str, object], missing: str
) -> None:
    """It is too close to call, and the sentence, the line and a note name the fact."""
    keys = {**LLAMA_8B, **{f"llama.{name}": value for name, value in changes.items()}}
    sound = {name: value for name, value in keys.items() if value is not None}
    shape = shape_of(sound, tensors=TensorBytes(1000))
    found = estimate(plain(shape))
    verdict = judge(found)
    assert verdict.fit is Fit.TOO_CLOSE
    assert f"llama.{missing}" in verdict.sentence
    assert any(f"llama.{missing}" in note for note in found.notes)
    assert lines(plain(shape))["KV cache"].basis is Basis.INFERRED
    assert largest_context(plain(shape)) is None
    assert answer(plain(shape)).sentence_of_largest == "largest context that fits: not known"
    tiny = plain(replace(shape, tensors=TensorBytes(30 * GIB)))
    assert judge(estimate(tiny)).fit is Fit.DOES_NOT_FIT
    beside = plain(llama_8b(), drafter=shape)
    assert judge(estimate(beside)).fit is Fit.TOO_CLOSE


def test_a_stored_shape_without_heads_fits_no_more_surely_than_a_new_one() -> None:
    """It was stored before shapes named what they lack."""
    layers = tuple(replace(layer, heads_kv=0) for layer in llama_8b().layers)
    old = replace(llama_8b(), layers=layers, tensors=TensorBytes(1000))
    assert old.unsaid == ()
    assert judge(estimate(plain(old))).fit is Fit.TOO_CLOSE


def test_sound_shapes_leave_nothing_unsaid() -> None:
    """A model of states alone has no heads, and a projector no layers of ours."""
    states = {"mamba.ssm.inner_size": 128, "mamba.ssm.state_size": 16, "mamba.block_count": 2}
    more = {"mamba.embedding_length": 64, "mamba.attention.head_count": 0}
    mamba = shape_of({"general.architecture": "mamba", **states, **more}, tensors=TensorBytes(9))
    for shape in (llama_8b(), qwen36(), gemma3_270m(), dflash_drafter(), mmproj(), mamba):
        assert shape.unsaid == ()


def test_a_header_that_was_cut_is_noted() -> None:
    """What stands behind the tokenizer may still be a fact."""
    cut = plain(replace(llama_8b(), keys_read=False))
    assert any("read up to its tokenizer" in note for note in estimate(cut).notes)


@pytest.mark.parametrize("text", ["", "/", "q8_0/", "/q8_0", "q8_0/f16/f16", "q8 0", "x" * 33])
def test_half_a_pair_of_cache_types_is_refused(text: str) -> None:
    """Whoever wrote a stroke meant a second type."""
    with pytest.raises(UsageError, match="is no cache type"):
        asked_types(text)
    assert asked_types("q8_0") == ("q8_0", "q8_0")
    assert asked_types("q8_0/turbo3") == ("q8_0", "turbo3")


@pytest.mark.parametrize(
    ("wish", "advice"),
    [
        ({"sequences": 0}, "Give 1 to 256 slots."),
        ({"context": 0}, "Give 1 to 16777216 tokens."),
        ({"drafter_context": 0}, "Give 1 to 16777216 tokens."),
        ({"cross_context": 0}, "Give 1 to 16777216 tokens."),
    ],
)
def test_a_count_out_of_range_is_refused_in_its_own_unit(wish: dict[str, int], advice: str) -> None:
    """Slots are no tokens; nought is a count as well."""
    with pytest.raises(UsageError, match="is out of range") as told:
        plain(llama_8b(), **wish)
    assert told.value.advice == advice
