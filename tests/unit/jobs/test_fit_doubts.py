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

from jobs.dialect.memory_log import BootMemory, MemoryLines
from jobs.errors import UsageError
from jobs.fit.amounts import GIB, MIB, Band, mib, parse_amount
from jobs.fit.component import Component
from jobs.fit.estimate import estimate
from jobs.fit.residuals import Residual, compare, corrected, error, learn
from jobs.fit.setup import Card, Setup
from jobs.fit.shape import Shape, TensorBytes
from jobs.fit.shape_reading import shape_of
from jobs.known_engines import state_named

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
    """Its tensors may be anything below."""
    shape = replace(llama_8b(), tensors=TensorBytes(5000, whole=False))
    line = lines(plain(shape))["weights"]
    assert line.loaded == Band(0, 5000, 5000)
    assert "the most" in line.note


def test_more_context_than_was_trained_is_noted() -> None:
    """It is laid out all the same."""
    notes = estimate(plain(llama_8b(), context=262_144)).notes
    assert "the model was trained for 131072 tokens, 262144 are asked" in notes


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
    assert mib(1234 * MIB) == "1 234"


def test_a_drafter_and_a_projector_teach_as_well() -> None:
    """Their lines are compared where the log has them; a line of nothing teaches nothing."""
    wish = plain(qwen36(), drafter=dflash_drafter(), projector=mmproj(), state=BEELLAMA)
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
