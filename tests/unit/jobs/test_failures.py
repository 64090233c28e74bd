"""Each known failure line has its own class, blame and advice."""

from __future__ import annotations

import pytest

from jobs.dialect.build_failures import BUILDING, LIMITS
from jobs.dialect.failure_rule import PHASES
from jobs.dialect.failures import FAILURES
from jobs.engines.base import classify
from jobs.model import Blame

LINES = [
    ("bad_flag", "error: invalid argument: --mmap"),
    ("removed_flag", "error: the argument has been removed. use --spec-draft-n-max"),
    ("bad_value", 'error while handling argument "-c": stoi'),
    ("kv_type", 'error while handling argument "-ctk": Unsupported cache type: turbo3'),
    ("spec_type", 'error while handling argument "--spec-type": unknown speculative type: mtp'),
    ("spec_type", "unknown speculative decoding type without draft model"),
    ("port", "couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080"),
    ("port", "srv main: exiting due to HTTP server error"),
    ("libcuda_rt", "error while loading shared libraries: libcuda.so.1: cannot open shared object"),
    ("gpu_init", "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected"),
    ("no_sm", "CUDA error: no kernel image is available for execution on the device"),
    ("arch_unknown", "llama_model_load: error: unknown model architecture: 'dflash-draft'"),
    ("tensors", "done_getting_tensors: wrong number of tensors; expected 866, got 862"),
    ("tensor_missing", "error loading model: missing tensor 'hidden_norm.weight'"),
    ("tensor_shape", "tensor 'output.weight' has wrong shape; expected 5120, 10, got 5120, 11"),
    ("ggml_type", "tensor 'blk.0.attn_q.weight' has invalid ggml type 45. should be in [0, 42)"),
    ("drafter_meta", "DFlash model requires 'target_layers' in GGUF metadata"),
    (
        "hparam",
        "error loading hyperparameters: key not found in model: qwen35.ssm.inner_size",
    ),
    ("truncated", "data is not within the file bounds, model is corrupted or incomplete"),
    ("truncated", "gguf_init_from_file_impl: invalid magic characters: 'no m', expected 'GGUF'"),
    ("load_drafter", "srv load_model: failed to load draft model, '/m/draft.gguf'"),
    ("load_mmproj", "srv load_model: failed to load multimodal model, '/m/mmproj.gguf'"),
    ("load_target", "srv load_model: failed to load model, '/m/target.gguf'"),
    ("mmproj_mismatch", "mismatch between text model (n_embd = 5120) and mmproj (n_embd = 4096)"),
    ("mmproj_mismatch", "clip_init: unknown projector type: gemma5"),
    ("mmproj_missing", "image input is not supported - hint: you may need to provide the mmproj"),
    ("oom_alloc", "allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory"),
    ("oom_kv", "llama_kv_cache: failed to allocate buffer for kv cache"),
    ("oom_kv", "llama_memory_recurrent: failed to allocate buffer for rs cache"),
    ("oom_compute", "sched_reserve: failed to allocate compute pp buffers"),
    ("oom_compute", "sched_reserve: failed to allocate compute buffers"),
    ("oom_runtime", "CUDA error: out of memory"),
    (
        "token_range",
        "what():  vector::_M_range_check: __n (which is 1083360553) >= this->size()",
    ),
    (
        "oom_hidden",
        "what():  vector::_M_range_check: __n (which is 5) >= this->size()",
    ),
    ("ring_oom", "dflash gpu ring: cudaMalloc failed for layer 3"),
    ("fattn", "ggml/src/ggml-cuda/fattn.cu:1265: fatal error"),
    ("ubatch_img", "non-causal attention requires n_ubatch >= n_tokens"),
    ("ubatch_draft", "encoder requires n_ubatch >= n_tokens"),
    ("logits", "GGML_ASSERT(logits != nullptr) failed"),
    ("pair_mismatch", "ggml.c:2100: GGML_ASSERT(ggml_can_repeat(b, a)) failed"),
    ("assert", "ggml-cuda.cu:77: GGML_ASSERT(offset == 0) failed"),
    ("op_missing", "ggml_compute_forward: op not implemented: SSM_CONV_TREE"),
    ("illegal_mem", "CUDA error: an illegal memory access was encountered"),
    ("cuda_other", "CUDA error: unspecified launch failure"),
    ("v_needs_fa", "llama_init_from_model: V cache quantization requires flash_attn"),
    ("template", "chat template parsing error: Unknown argument ensure_ascii"),
    ("ctx", "request (70000 tokens) exceeds the available context size (65536 tokens), try less"),
    ("ctx", "Context size has been exceeded."),
    ("compute", "srv update_slots: Invalid input batch. i = 0, n_batch = 512, ret = -1"),
    ("compute", "srv update_slots: Compute error. i = 0, n_batch = 512, ret = -3"),
]


@pytest.mark.parametrize(("name", "line"), LINES, ids=[line[:40] for _, line in LINES])
@pytest.mark.parametrize("prefix", ["", "0.01.024.528 E srv  load_model: "])
def test_each_known_line_has_its_class(name, line, prefix):
    """Timestamps, levels and components before the words change nothing."""
    found = classify(f"loading\n{prefix}{line}\nmore", FAILURES)
    assert found is not None
    assert found.rule.name == name
    assert found.line.endswith(line)


def test_every_rule_is_shown_to_work():
    """No rule is in the table without a line that proves it, and no name comes twice."""
    names = [rule.name for rule in FAILURES]
    assert sorted(names) == sorted(set(names))
    assert set(names) == {name for name, _ in LINES}


@pytest.mark.parametrize("rule", FAILURES, ids=[rule.name for rule in FAILURES])
def test_every_rule_says_what_to_do(rule):
    """Advice is one sentence; a passing change of environment is never blamed on a log line."""
    assert rule.advice.endswith(".")
    assert "\n" not in rule.advice
    assert rule.blame in (Blame.ENGINE, Blame.CONFIGURATION, Blame.INFRASTRUCTURE)


@pytest.mark.parametrize("rule", FAILURES, ids=[rule.name for rule in FAILURES])
def test_every_rule_says_where_it_is_said(rule):
    """Start, arguments, socket, one of the loads, or a request; its making has its own table."""
    assert rule.phases
    assert rule.phases <= set(PHASES)


FACTS = (
    *[
        "bad_flag",
        "removed_flag",
        "bad_value",
        "kv_type",
        "spec_type",
        "port",
        "libcuda_rt",
        "gpu_init",
        "no_sm",
    ],
    *[
        "arch_unknown",
        "tensors",
        "tensor_missing",
        "tensor_shape",
        "ggml_type",
        "drafter_meta",
        "hparam",
    ],
    *[
        "truncated",
        "load_drafter",
        "load_mmproj",
        "load_target",
        "mmproj_mismatch",
        "mmproj_missing",
    ],
    *[
        "oom_alloc",
        "oom_kv",
        "oom_compute",
        "oom_runtime",
        "oom_hidden",
        "ring_oom",
        "fattn",
        "ubatch_img",
    ],
    *[
        "ubatch_draft",
        "logits",
        "pair_mismatch",
        "assert",
        "op_missing",
        "illegal_mem",
        "cuda_other",
    ],
    *[
        "v_needs_fa",
        "template",
        "ctx",
        "compute",
        "link_vmm",
        "link_stub",
        "ui_assets",
        "nvcc_arch",
        "build_oom",
    ],
)
"""Every class of the fork chain that was collected from logs, issues and sources."""


def test_the_tables_know_every_collected_class():
    """46 classes from 44 rows (one row names three models); five of them end a build."""
    assert len(FACTS) == len(set(FACTS)) == 46
    of_builds = {rule.name for rule in BUILDING}
    assert set(FACTS) <= of_builds | {rule.name for rule in FAILURES}
    assert len(set(FACTS) & of_builds) == 5
    assert set(FACTS) - of_builds <= {name for name, _ in LINES}


def test_no_class_is_in_both_tables():
    """What ends a build and what ends a server are told apart by name."""
    assert not {rule.name for rule in (*BUILDING, *LIMITS)} & {rule.name for rule in FAILURES}


def test_the_first_line_wins():
    """What came first is the cause, whatever its place in the table."""
    text = "wrong number of tensors; expected 2, got 1\nerror: invalid argument: --x"
    assert classify(text, FAILURES).rule.name == "tensors"


@pytest.mark.parametrize(
    "line",
    [
        "warning: no usable GPU found, --gpu-layers option will be ignored",
        "failed to initialize the context: dflash requires ctx_other to be set "
        "(this is normal during memory fitting)",
        "srv main: model loaded",
        "",
    ],
)
def test_a_harmless_look_alike_is_no_failure(line):
    """Lines that a healthy start also writes name no failure."""
    assert classify(line, FAILURES) is None
