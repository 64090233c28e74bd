"""What a boot admits to, and when that is less than was asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialect.logs import WARNINGS, read_log
from jobs.dialect.settings import Asked, read_settings, shortfall
from jobs.model import BootFacts, Effective, Validity

ASKED = Asked(alias="ours", context_tokens=32768, model_path="/m.gguf")
FINE = Effective(32768, 1, False, "ours", "/m.gguf", "b1-abc")
PROPS = {
    "default_generation_settings": {"n_ctx": 32768},
    "total_slots": 1,
    "model_alias": "ours",
    "model_path": "/m.gguf",
    "build_info": "b1-abc",
}
LOG = """
load_tensors: offloaded 41/49 layers to GPU
llama_kv_cache_iswa: creating non-SWA KV cache, size = 2048 cells
llama_kv_cache: size =    6.00 MiB (  2048 cells,   3 layers,  1/1 seqs), K (f16):    3.00 MiB
llama_kv_cache: size =   15.50 MiB (  1024 cells,  15 layers,  1/1 seqs), K (f16):    7.50 MiB
sched_reserve: graph splits = 3
"""
WARNING_LINES = {
    "spec_off_multimodal": "speculative decoding is not supported by multimodal, "
    "it will be disabled",
    "spec_off_context": "speculative decoding not supported by this context",
    "kv_upgraded": "auto-asymmetric: GQA ratio 6:1 is high, upgrading K from turbo3 to q8_0",
    "kv_cpu_fallback": "turbo KV cache falling back to q8_0 for CPU-bound layers",
    "batch_capped": "dflash: capped -b/-ub to 256/64",
    "draft_context_capped": "dflash: setting -cd to 256",
    "spec_auto_enabled": "draft model is specified but 'draft' speculative type is not "
    "explicitly enabled - enabling it",
    "dflash_slow_path": "dflash: GPU cross ring unavailable; using CPU hidden capture",
    "fit_failed": "failed to fit params to free device memory",
    "broken_logits": "invalid reduced-logits token 7",
    "no_usable_gpu": "warning: no usable GPU found",
}


def test_the_log_tells_offload_cache_and_splits():
    """Layers, the sum of all caches and the graph splits are read from the log."""
    facts = read_log(LOG)
    assert (facts.offloaded_layers, facts.total_layers) == (41, 49)
    assert facts.kv_mib == pytest.approx(21.5)
    assert facts.graph_splits == 3
    assert facts.warnings == ()


def test_what_the_log_does_not_say_is_unknown():
    """A silent log gives None, never zero."""
    assert read_log("listening") == BootFacts()


@pytest.mark.parametrize("name", WARNING_LINES)
def test_each_silent_degradation_is_seen(name):
    """Every line after which a healthy server gives other numbers has a name."""
    assert read_log(f"0.1 W srv: {WARNING_LINES[name]}\n").warnings == (name,)


def test_no_warning_is_without_a_line_that_proves_it():
    """The table and the lines above name the same warnings."""
    assert {name for name, _ in WARNINGS} == set(WARNING_LINES)


def test_settings_are_read_from_both_places():
    """The smallest per-slot context counts, wherever it is stated."""
    found = read_settings(PROPS, [{"n_ctx": 8192, "speculative": True}])
    assert found == Effective(8192, 1, True, "ours", "/m.gguf", "b1-abc")
    assert read_settings({}, []) == Effective()


@given(
    st.dictionaries(st.sampled_from(sorted(PROPS)), st.integers() | st.none() | st.text()),
    st.lists(st.integers() | st.dictionaries(st.just("n_ctx"), st.text())),
)
def test_no_settings_whatever_raise(props, slots):
    """Wrong types are absent settings."""
    assert isinstance(read_settings(props, slots), Effective)


def test_a_boot_that_runs_as_asked_falls_short_of_nothing():
    """Equal settings, or a context rounded up by one step, are as asked."""
    assert shortfall(ASKED, FINE, BootFacts()) is None
    odd = Asked(alias="ours", context_tokens=32700, model_path="/m.gguf")
    assert shortfall(odd, FINE, BootFacts()) is None


@pytest.mark.parametrize(
    ("effective", "facts", "validity"),
    [
        ({"context_tokens": 8192}, {}, Validity.CONFIG_MISMATCH),
        ({"context_tokens": 131072}, {}, Validity.CONFIG_MISMATCH),
        ({"context_tokens": None}, {}, Validity.CONFIG_MISMATCH),
        ({"slots": 4}, {}, Validity.CONFIG_MISMATCH),
        ({"alias": "theirs"}, {}, Validity.WRONG_SERVER),
        ({"model_path": "/other.gguf"}, {}, Validity.WRONG_SERVER),
        ({"model_path": ""}, {}, Validity.WRONG_SERVER),
        ({}, {"offloaded_layers": 41, "total_layers": 49}, Validity.PARTIAL_OFFLOAD),
        ({"speculative": False}, {}, Validity.SPEC_INACTIVE),
        ({"speculative": None}, {"warnings": ("spec_off_context",)}, Validity.SPEC_INACTIVE),
    ],
)
def test_less_than_asked_has_its_own_validity(effective, facts, validity):
    """Cases C07 and C08: a quarter of the context or some of the layers is no run as asked."""
    asked = replace(ASKED, gpu_layers=99, kind="dflash")
    seen = replace(FINE, **({"speculative": True} | effective))
    found = shortfall(asked, seen, BootFacts(**facts))
    assert found is not None
    assert found[0] is validity
    assert found[1]


def test_no_layer_on_the_card_is_right_where_none_was_asked():
    """A CPU run does not fall short because the card holds nothing."""
    facts = BootFacts(offloaded_layers=0, total_layers=19)
    assert shortfall(ASKED, FINE, facts) is None
