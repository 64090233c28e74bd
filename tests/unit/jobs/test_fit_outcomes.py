"""What happened on a 24 GiB card, what the model says of it, and what it can never say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.shapes import (
    UD_Q3_K_XL_BYTES,
    dflash_drafter,
    gemma3_270m,
    llama_8b,
    mmproj,
    qwen36,
)

from jobs.errors import UsageError
from jobs.fit.amounts import GIB, MIB, Band, exactly, parse_amount
from jobs.fit.estimate import Estimate, Fit, estimate, judge, largest_context
from jobs.fit.setup import Card, Setup
from jobs.known_engines import ANY_ENGINE, state_named

CARD = Card(total_bytes=24 * GIB)
BEELLAMA = state_named("beellama@v0.1.1")


def wish(context: int, ubatch: int, *, vision: bool = False) -> Setup:
    return Setup(
        target=qwen36(UD_Q3_K_XL_BYTES),
        card=CARD,
        context=context,
        ubatch=ubatch,
        state=BEELLAMA,
        key="turbo3",
        value="turbo3",
        drafter=dflash_drafter(),
        cross_context=1024,
        projector=mmproj() if vision else None,
    )


def test_32k_with_a_drafter_in_buun_fits() -> None:
    """29 April: Q4_K_M, f16 cache; the earlier "28 GB" was a mistake."""
    setup = Setup(
        target=qwen36(),
        card=CARD,
        context=32_768,
        ubatch=256,
        state=state_named("buun@2026-05-01"),
        drafter=dflash_drafter(),
    )
    found = judge(estimate(setup))
    assert found.fit is Fit.FITS
    assert found.deciding == "drafter exchange"


def test_262k_of_text_with_a_small_step_fits() -> None:
    """11 May: ran at 107 t/s."""
    found = judge(estimate(wish(262_144, 256)))
    assert found.fit is Fit.FITS
    assert found.deciding == "drafter compute"
    assert largest_context(wish(262_144, 256)) == 262_144


def test_200k_with_vision_is_likely_to_fit_and_the_projector_decides() -> None:
    """12 May: it ran; the largest image, which nobody sent, could have been too much."""
    found = estimate(wish(200_000, 2048, vision=True))
    verdict = judge(found)
    assert verdict.fit is Fit.TOO_CLOSE
    assert verdict.deciding == "projector buffers"
    assert found.filled.likely < verdict.usable.low
    assert found.loaded.high < verdict.usable.low


def test_262k_with_vision_and_a_large_step_is_likely_too_much() -> None:
    """12 May: it ran out of memory. Buffers nobody measured decide."""
    found = estimate(wish(262_144, 2048, vision=True))
    verdict = judge(found)
    assert verdict.fit is Fit.TOO_CLOSE
    assert verdict.deciding == "drafter compute"
    assert found.filled.likely > verdict.usable.high


def test_the_same_on_a_smaller_card_does_not_fit_and_names_a_sure_line() -> None:
    """On 16 GiB the surest lines alone are too much."""
    setup = replace(wish(262_144, 2048, vision=True), card=Card(total_bytes=16 * GIB))
    verdict = judge(estimate(setup))
    assert verdict.fit is Fit.DOES_NOT_FIT
    assert verdict.deciding in ("KV cache", "recurrent state", "compute", "drafter weights")
    assert "does not fit" in verdict.sentence
    assert largest_context(setup) is None


def test_a_drafter_that_follows_the_target_takes_five_gib() -> None:
    """The regression of beellama 0.4: 20,480 bytes a token at 262,144."""
    setup = Setup(
        target=qwen36(),
        card=CARD,
        context=262_144,
        state=state_named("beellama@v0.4.1"),
        drafter=dflash_drafter("dflash"),
    )
    found = {line.name: line for line in estimate(setup).components}
    assert found["drafter cache"].loaded.likely == 5 * GIB
    bounded = {line.name: line for line in estimate(replace(setup, drafter_context=256)).components}
    assert bounded["drafter cache"].loaded.likely == 5 * MIB


def test_states_are_kept_twice_while_drafting_in_buun_and_beellama() -> None:
    """149.62 MiB become 299.25; where it is unread the band says both."""
    lines = {line.name: line for line in estimate(wish(32_768, 256)).components}
    assert lines["recurrent state"].loaded == exactly(2 * 156_893_184)
    unread = replace(wish(32_768, 256), state=ANY_ENGINE, key="f16", value="f16")
    band = {line.name: line for line in estimate(unread).components}["recurrent state"].loaded
    assert band == Band(156_893_184, 156_893_184, 2 * 156_893_184)


def test_a_projector_without_widths_is_an_assumption() -> None:
    """Its band is wide and says so."""
    bare = mmproj(**{"clip.vision.feed_forward_length": 0})
    lines = estimate(replace(wish(8192, 256), projector=bare)).components
    assert lines[-1].note == "the header names no widths: an assumption"
    assert lines[-1].loaded.width == GIB


def test_a_measured_card_narrows_the_band() -> None:
    """Context and reserve measured: no doubt is left in what is usable."""
    card = Card(total_bytes=24 * GIB, reserve_bytes=113 * MIB, context_bytes=400 * MIB)
    measured = estimate(replace(wish(32_768, 256), card=card))
    assert card.usable == exactly(24 * GIB - 113 * MIB)
    assert measured.filled.width < estimate(wish(32_768, 256)).filled.width


def test_what_others_hold_is_not_usable() -> None:
    """Foreign memory is taken off, down to nothing."""
    assert Card(total_bytes=GIB, foreign_bytes=2 * GIB).usable == exactly(0)


@pytest.mark.parametrize("name", ["context", "ubatch", "batch", "sequences", "drafter_context"])
def test_impossible_numbers_are_refused(name: str) -> None:
    """Zero, and more than any engine takes."""
    for value in (-1, 2**40) if name == "drafter_context" else (0, 2**40):
        with pytest.raises(UsageError, match="out of range"):
            replace(wish(4096, 256), **{name: value})


def test_a_projector_is_no_target() -> None:
    """A file without layers is refused with the next step."""
    with pytest.raises(UsageError, match="no layers"):
        Setup(target=mmproj(), card=CARD, context=4096)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("24GiB", 24 * GIB), ("24 GiB", 24 * GIB), ("0.93GB", 930_000_000), ("512MiB", 512 * MIB)],
)
def test_amounts_are_read_strictly(text: str, size_bytes: int) -> None:
    """GiB and GB are not the same."""
    assert parse_amount(text, what="the card") == size_bytes


@pytest.mark.parametrize(
    "text", ["24", "24G", "24gib", "24GB!", "-1GiB", "1e3GiB", "", "GiB", "9" * 16 + "B", "9999TiB"]
)
def test_amounts_that_are_not_plain_are_refused(text: str) -> None:
    """No unit, a sloppy one, or more than there is."""
    with pytest.raises(UsageError):
        parse_amount(text, what="the card")


SHAPES = st.sampled_from([qwen36(), gemma3_270m(), llama_8b()])
CONTEXTS = st.integers(1, 300_000)
STEPS = st.sampled_from([1, 64, 256, 512, 2048, 4096])
ENGINES = st.sampled_from(["upstream@dflash", "buun@2026-05", "beellama@0.1", "beellama@0.4"])
TYPES = ["q4_0", "q5_0", "q5_1", "f16", "f32"]


@st.composite
def wishes(draw: st.DrawFn) -> Setup:
    return Setup(
        target=draw(SHAPES),
        card=Card(total_bytes=draw(st.integers(1, 200)) * GIB),
        context=draw(CONTEXTS),
        state=state_named(draw(ENGINES)),
        key=draw(st.sampled_from(TYPES)),
        value=draw(st.sampled_from(TYPES)),
        batch=4096,
        ubatch=draw(STEPS),
        sequences=draw(st.integers(1, 8)),
        unified=draw(st.booleans()),
        drafter=draw(st.sampled_from([None, dflash_drafter(), llama_8b()])),
        projector=draw(st.sampled_from([None, mmproj()])),
    )


def at_most(one: Estimate, other: Estimate) -> bool:
    pairs = ((one.loaded, other.loaded), (one.filled, other.filled))
    return all(a.low <= b.low and a.likely <= b.likely and a.high <= b.high for a, b in pairs)


@given(wishes(), st.integers(0, 100_000))
def test_more_context_never_takes_less(setup: Setup, more: int) -> None:
    """In any figure, with any files."""
    larger = replace(setup, context=setup.context + more)
    assert at_most(estimate(setup), estimate(larger))


@given(wishes(), STEPS)
def test_a_larger_step_never_takes_less(setup: Setup, step: int) -> None:
    """The micro-batch grows buffers only."""
    larger = replace(setup, ubatch=max(setup.ubatch, step))
    assert at_most(estimate(setup), estimate(larger))


@given(wishes(), st.sampled_from(TYPES))
def test_more_bits_never_make_a_smaller_cache(setup: Setup, name: str) -> None:
    """Of the cache itself: copies belong to some types only."""

    def kv(wanted: Setup) -> int:
        return estimate(wanted).components[1].loaded.likely

    finer = TYPES[max(TYPES.index(setup.key), TYPES.index(name))]
    assert kv(setup) <= kv(replace(setup, key=finer))


@given(wishes())
def test_bands_are_ordered_and_filled_is_never_less_than_loaded(setup: Setup) -> None:
    """A band that is not ordered cannot even be made."""
    found = estimate(setup)
    assert 0 <= found.loaded.low <= found.loaded.likely <= found.loaded.high
    assert found.loaded.low <= found.filled.low
    assert found.loaded.likely <= found.filled.likely
    assert found.loaded.high <= found.filled.high
    assert judge(found).deciding in {line.name for line in found.components}


@given(wishes())
def test_the_largest_context_fits_and_the_next_step_does_not(setup: Setup) -> None:
    """Unless the trained length ends the search."""
    largest = largest_context(setup)
    usable = setup.card.usable.low
    if largest is not None:
        assert estimate(setup.at(largest)).filled.high <= usable
    following = (largest or 0) + 256
    if following <= (setup.target.context_length or 0):
        assert estimate(setup.at(following)).filled.high > usable
