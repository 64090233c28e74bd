"""The memory model against what was measured and against hand-computed caches."""

from __future__ import annotations

import pytest
from support.shapes import gemma3_270m, llama_8b, qwen36

from jobs.dialect.memory_log import read_memory
from jobs.errors import UsageError
from jobs.fit.amounts import MIB
from jobs.fit.caches import cache, cache_bytes, recurrent
from jobs.fit.estimate import estimate
from jobs.fit.formats import cache_types
from jobs.fit.setup import MEASURED_CONTEXT_BYTES, MEASURED_RESERVE_BYTES, Card, Setup
from jobs.known_engines import ANY_ENGINE, state_named

H200 = Card(
    total_bytes=143_771 * MIB,
    reserve_bytes=MEASURED_RESERVE_BYTES,
    context_bytes=MEASURED_CONTEXT_BYTES,
)
BEELLAMA = state_named("beellama@v0.1.2")

# n_ctx, ubatch, type, KV, recurrent, compute, after load, after a request of 4,200 tokens; MiB.
MEASURED = [
    (32_768, 256, "f16", 2048, 149.62, 247.50, 18_126, 18_144),
    (32_768, 2048, "f16", 2048, 149.62, 1980.00, 19_858, 19_898),
    (262_144, 256, "f16", 16_384, 149.62, 412.01, 32_628, 32_646),
    (262_144, 2048, "f16", 16_384, 149.62, 3296.07, 35_512, 35_552),
    (32_768, 256, "q8_0", 1088, 149.62, 247.50, 17_266, 17_300),
    (262_144, 2048, "q8_0", 8704, 149.62, 3344.34, 27_980, 28_020),
    (32_768, 256, "turbo3", 400.12, 149.62, 247.50, 16_612, 16_634),
    (262_144, 256, "turbo3", 3200.12, 149.62, 412.01, 20_474, 20_496),
    (262_144, 2048, "turbo3", 3200.12, 149.62, 3296.07, 23_358, 23_444),
]

# n_ctx, then GB of f16, q8_0, q4_0, turbo3 of beellama, turbo3 of buun.
CACHES = [
    (32_000, 2.10, 1.11, 0.59, 0.41, 0.46),
    (98_304, 6.44, 3.42, 1.81, 1.26, 1.41),
    (131_072, 8.59, 4.56, 2.42, 1.68, 1.88),
    (200_000, 13.1, 6.97, 3.69, 2.56, 2.87),
    (262_144, 17.2, 9.13, 4.83, 3.36, 3.76),
]


@pytest.mark.parametrize("row", MEASURED)
def test_every_measured_row_comes_out_within_one_percent(row: tuple) -> None:
    """Qwen3.6-27B in beellama v0.1.2 on an H200: each printed line and both process figures."""
    context, ubatch, name, kv, states, compute, loaded, filled = row
    found = estimate(
        Setup(
            target=qwen36(),
            card=H200,
            context=context,
            state=BEELLAMA,
            key=name,
            value=name,
            ubatch=ubatch,
            filled_tokens=4200,
        )
    )
    lines = {line.name: line.loaded.likely / MIB for line in found.components}
    assert lines["weights"] == pytest.approx(15_088.32, rel=1e-6)
    assert lines["KV cache"] == pytest.approx(kv, rel=1e-4)
    assert lines["recurrent state"] == pytest.approx(states, rel=1e-4)
    assert lines["compute"] == pytest.approx(compute, rel=1e-3)
    assert found.loaded.likely / MIB == pytest.approx(loaded, rel=0.01)
    assert found.filled.likely / MIB == pytest.approx(filled, rel=0.01)
    assert found.loaded.low <= loaded * MIB <= found.loaded.high


@pytest.mark.parametrize("row", CACHES)
def test_the_table_of_caches_comes_out_within_one_percent(row: tuple) -> None:
    """Per type and fork, as the published table rounds it."""
    context, *sizes = row
    engines = ("beellama@0.1",) * 4 + ("buun@2026-05",)
    names = ("f16", "q8_0", "q4_0", "turbo3", "turbo3")
    for size, engine, name in zip(sizes, engines, names, strict=True):
        shape = qwen36()
        types = cache_types(
            state_named(engine), key=name, value=name, heads=24, heads_kv=shape.heads_kv
        )
        found = cache_bytes(shape, types, context=context, ubatch=512, extra=True, sharers=1)
        # The table has two digits after the point, and one where it has three before it.
        rounding = 0.05 if size >= 10 else 0.005
        assert found / 1e9 == pytest.approx(size, rel=0.01, abs=rounding)


def test_turboquant_raises_k_at_six_heads_to_one() -> None:
    """turbo3 asked, 6.24 GB laid out at 262,144 tokens, and the estimate says why."""
    found = estimate(
        Setup(
            target=qwen36(),
            card=H200,
            context=262_144,
            state=state_named("turboquant@2026-05"),
            key="turbo3",
            value="turbo3",
        )
    )
    kv = next(line for line in found.components if line.name == "KV cache")
    assert kv.loaded.likely / 1e9 == pytest.approx(6.24, rel=0.01)
    assert any("raises K from turbo3 to q8_0" in note for note in found.notes)


def test_turboquant_leaves_k_alone_below_six_to_one_or_beside_another_type() -> None:
    """The rule asks for equal types and the ratio."""
    state = state_named("turboquant@2026-05")
    assert cache_types(state, key="turbo3", value="turbo3", heads=32, heads_kv=8).key == "turbo3"
    assert cache_types(state, key="turbo3", value="turbo4", heads=24, heads_kv=4).key == "turbo3"


def test_turboquant_keeps_the_last_layers_finer_with_turbo2() -> None:
    """Of Qwen3.6 only layer 63 is both at the edge and attending: its V is q8_0."""
    types = cache_types(
        state_named("turboquant@2026-05"), key="f16", value="turbo2", heads=24, heads_kv=4
    )
    found = cache_bytes(qwen36(), types, context=256, ubatch=256, extra=True, sharers=1)
    values = 15 * 2.125 + 8.5
    assert found == round(256 * 4 * 256 * (16 * 16 + values) / 8)


def test_turbo_pads_a_head_to_128_values() -> None:
    """A head of 80 takes the place of one of 128."""
    shape = llama_8b()
    narrow = shape.layers[0].__class__(shape.layers[0].kind, 8, 80, 80)
    small = shape.__class__(architecture="llama", tensors=shape.tensors, layers=(narrow,))
    types = cache_types(BEELLAMA, key="turbo3", value="turbo3", heads=8, heads_kv=8)
    found = cache_bytes(small, types, context=256, ubatch=256, extra=True, sharers=1)
    assert found == 256 * 8 * 2 * 128 * 3.125 / 8


def test_a_sliding_window_keeps_no_more_than_it_sees() -> None:
    """gemma-3-270m at 32,768: 3 layers keep all (96 MiB), 15 keep 1,024 tokens (15 MiB)."""
    setup = Setup(target=gemma3_270m(), card=H200, context=32_768)
    assert cache(setup).loaded.likely == 111 * MIB


def test_a_real_boot_of_the_sliding_shape_is_within_the_band() -> None:
    """gemma-3-270m in xllamacpp on a CPU, 2,048 tokens, micro-batch 512: lines of its log."""
    seen = read_memory(
        "llama_kv_cache: size =    6.00 MiB (  2048 cells,   3 layers,  1/1 seqs), K (f16): 3.00\n"
        "llama_kv_cache: size =   15.00 MiB (  1024 cells,  15 layers,  1/1 seqs), K (f16): 7.50\n"
        "sched_reserve:        CPU compute buffer size =   520.27 MiB\n"
    ).target
    setup = Setup(target=gemma3_270m(), card=H200, context=2048, ubatch=512)
    lines = {line.name: line.loaded for line in estimate(setup).components}
    assert seen.cache == lines["KV cache"].likely
    assert seen.pinned is not None
    assert lines["compute"].low <= seen.pinned <= lines["compute"].high
    assert lines["compute"].likely == pytest.approx(seen.pinned, rel=0.02)


def test_a_plain_dense_model_has_the_cache_of_the_textbook() -> None:
    """Llama 8B: 2 times 32 layers times 8 heads times 128 times 2 bytes = 128 KiB a token."""
    setup = Setup(target=llama_8b(), card=H200, context=8192)
    assert cache(setup).loaded.likely == 8192 * 128 * 1024
    assert recurrent(setup) is None


def test_one_embedding_for_both_ends_counts_on_the_card() -> None:
    """gemma has no output tensor: the embedding is loaded there as well."""
    found = estimate(Setup(target=gemma3_270m(), card=H200, context=4096))
    assert found.components[0].loaded.likely == 246_587_904


def test_a_context_is_laid_out_in_steps_of_256() -> None:
    """200,000 tokens become 200,192, and the estimate says so."""
    found = estimate(Setup(target=llama_8b(), card=H200, context=100_001))
    assert "the context is laid out as 100,096 tokens" in found.notes


def test_a_type_that_differs_between_forks_asks_for_the_engine() -> None:
    """turbo3 without an engine is no size; the message lists the sizes there are."""
    with pytest.raises(UsageError) as caught:
        cache_types(ANY_ENGINE, key="turbo3", value="f16", heads=8, heads_kv=8)
    assert "3.125 bits in turboquant@2026-05" in caught.value.advice
    assert "3.5 bits in buun@2026-05" in caught.value.advice


def test_a_type_nobody_read_is_unknown() -> None:
    """Never guessed from its name."""
    with pytest.raises(UsageError, match="nobody read a cache type 'turbo9'"):
        cache_types(BEELLAMA, key="turbo9", value="f16", heads=8, heads_kv=8)
