"""Memory lines of a log, and what measured boots teach an estimate."""

from __future__ import annotations

import pytest
from support.shapes import qwen36

from jobs.dialect.memory_log import MIB, read_memory
from jobs.fit.amounts import Basis
from jobs.fit.estimate import estimate, judge, largest_context
from jobs.fit.residuals import SHIFTED, compare, corrected, error, learn
from jobs.fit.setup import Card, Setup
from jobs.known_engines import state_named
from jobs.model import MemoryLines

LOG = """\
load_tensors:   CPU_Mapped model buffer size =   682.03 MiB
load_tensors:        CUDA0 model buffer size = {weights:.2f} MiB
llama_kv_cache: size = {cache:7.2f} MiB ( 32768 cells,  16 layers,  1/1 seqs), K (f16): x MiB
llama_memory_recurrent: size =  149.62 MiB (     1 cells,  64 layers,  1 seqs), R (f32): 5.6 MiB
sched_reserve:      CUDA0 compute buffer size =   999.00 MiB
sched_reserve:      CUDA0 compute buffer size = {compute:8.2f} MiB
sched_reserve:  CUDA_Host compute buffer size =   138.00 MiB
"""
DRAFTER = """\
srv    load_model: loading draft model 'd.gguf'
load_tensors:        CUDA0 model buffer size =  1669.00 MiB
llama_kv_cache: size =    5.00 MiB (   256 cells,   5 layers,  1/1 seqs), K (f16): 2.50 MiB
sched_reserve:      CUDA0 compute buffer size =   121.25 MiB
alloc_compute_meta:      CUDA0 compute buffer size =   248.10 MiB
"""
STATE = state_named("buun@2026-05")


def log(*, weights: float = 15_088.32, cache: float = 2048.0, compute: float = 300.0) -> str:
    return LOG.format(weights=weights, cache=cache, compute=compute)


def setup(context: int = 32_768) -> Setup:
    card = Card(total_bytes=24 * 2**30)
    return Setup(target=qwen36(), card=card, context=context, ubatch=256, state=STATE)


def test_a_log_says_what_lies_on_the_card_and_what_is_pinned() -> None:
    """Host buffers are not the card's; a buffer laid out twice counts as it was last."""
    found = read_memory(log())
    assert found.drafter is None
    assert found.target == MemoryLines(
        weights=round(15_088.32 * MIB),
        cache=2048 * MIB,
        recurrent=round(149.62 * MIB),
        compute=300 * MIB,
        pinned=138 * MIB,
    )


def test_drafter_and_projector_are_told_apart_from_the_target() -> None:
    """The line that announces the drafter is where its lines begin."""
    found = read_memory(log() + DRAFTER)
    assert found.target.weights == round(15_088.32 * MIB)
    assert found.drafter is not None
    assert found.drafter.weights == 1669 * MIB
    assert found.drafter.compute == round(121.25 * MIB)
    assert found.projector == round(248.10 * MIB)


@pytest.mark.parametrize("text", ["", "\x00\n" * 1000, "llama_kv_cache: size = x MiB", "a" * 10**6])
def test_a_log_that_says_nothing_gives_nothing(text: str) -> None:
    """Not said is not zero."""
    assert read_memory(text).target == MemoryLines()


def test_the_rest_of_a_process_is_laid_to_the_cuda_context() -> None:
    """Every line explains its part first."""
    found = estimate(setup())
    explained = sum(
        line.loaded.likely for line in found.components if line.name not in (SHIFTED, "compute")
    )
    residuals = compare(found, read_memory(log()), process_bytes=explained + 800 * MIB)
    by_name = {each.component: each for each in residuals}
    assert by_name["compute"].off == pytest.approx(300 / 247.5)
    # Weights and recurrent state are rounded to 0.01 MiB in the log.
    assert by_name[SHIFTED].measured / MIB == pytest.approx(500, abs=0.1)
    assert by_name[SHIFTED].estimated == 593 * MIB


def test_boots_correct_the_estimate_and_make_its_band_their_own() -> None:
    """Three boots whose compute was a fifth larger: so is the estimate, at any context."""
    boots = [
        compare(estimate(setup()), read_memory(log(compute=compute)))
        for compute in (296.0, 297.0, 299.0)
    ]
    corrections = learn(each for boot in boots for each in boot)
    other = estimate(setup(8192))
    line = next(each for each in corrected(other, corrections).components if each.name == "compute")
    before = next(each for each in other.components if each.name == "compute")
    assert line.loaded.likely == pytest.approx(before.loaded.likely * 297 / 247.5, rel=1e-4)
    assert line.loaded.low == pytest.approx(before.loaded.likely * 296 / 247.5, rel=1e-4)
    assert line.loaded.high == pytest.approx(before.loaded.likely * 299 / 247.5, rel=1e-4)
    assert line.basis is Basis.MEASURED
    assert "corrected by 3 boots" in line.note


def test_one_boot_narrows_a_band_by_half_only() -> None:
    """One boot knows no spread."""
    corrections = learn(compare(estimate(setup()), read_memory(log(compute=247.5))))
    before = next(each for each in estimate(setup()).components if each.name == "compute")
    after = next(
        each
        for each in corrected(estimate(setup()), corrections).components
        if each.name == "compute"
    )
    assert after.loaded.width == pytest.approx(before.loaded.width / 2, rel=0.01)


def test_boots_teach_their_own_engine_and_architecture_only() -> None:
    """Another state of the engine is another."""
    corrections = learn(compare(estimate(setup()), read_memory(log())))
    card = Card(total_bytes=24 * 2**30)
    other = estimate(
        Setup(target=qwen36(), card=card, context=4096, state=state_named("buun@2026-04"))
    )
    assert corrected(other, corrections) == other


def test_the_error_is_judged_by_boots_that_did_not_teach() -> None:
    """Leave one out: before 16.7 % off in compute, after under 2 %."""
    boots = [
        [
            each
            for each in compare(estimate(setup()), read_memory(log(compute=compute)))
            if each.component == "compute"
        ]
        for compute in (296.0, 297.0, 299.0)
    ]
    found = error(boots)
    assert found is not None
    assert found.boots == 3
    assert found.before == pytest.approx(0.167, abs=0.01)
    assert found.after < 0.02
    assert error(boots[:1]) is None


def test_corrections_reach_verdict_and_largest_context() -> None:
    """A learned compute buffer twice as large leaves less room."""
    corrections = learn(compare(estimate(setup()), read_memory(log(compute=2 * 247.5))))
    plain = largest_context(setup())
    learned = largest_context(setup(), correct=lambda found: corrected(found, corrections))
    assert plain is not None
    assert learned is not None
    assert learned < plain
    assert judge(corrected(estimate(setup()), corrections)).sentence
